{{/* Returns the chart's ConfigMaps that flags name, as namespace/name by flag. */}}
{{- define "k8singress.configMaps" -}}
{{- $own := include "k8singress.namespace" . -}}
{{- $full := include "k8singress.fullname" . -}}
{{- $maps := dict "configmap" (printf "%s/%s" (.Values.controller.configMapNamespace | default $own) (include "k8singress.controller" .)) -}}
{{- if .Values.tcp -}}
{{- $_ := set $maps "tcp-services-configmap" (printf "%s/%s-tcp" (.Values.controller.tcp.configMapNamespace | default $own) $full) -}}
{{- end -}}
{{- if .Values.udp -}}
{{- $_ := set $maps "udp-services-configmap" (printf "%s/%s-udp" (.Values.controller.udp.configMapNamespace | default $own) $full) -}}
{{- end -}}
{{- toJson $maps -}}
{{- end -}}

{{/* Returns the data of the ConfigMap of options. A key in controller.config takes precedence over the value for the same key. */}}
{{- define "k8singress.configData" -}}
{{- $c := .Values.controller -}}
{{- $data := dict "allow-snippet-annotations" ($c.allowSnippetAnnotations | default false) -}}
{{- range $key, $map := dict "add-headers" (dict "data" $c.addHeaders "name" "custom-add-headers")
  "proxy-set-headers" (dict "data" $c.proxySetHeaders "name" "custom-proxy-headers") -}}
{{- if $map.data }}{{ $_ := set $data $key (printf "%s/%s-%s" (include "k8singress.namespace" $) (include "k8singress.fullname" $) $map.name) }}{{ end -}}
{{- end -}}
{{- mergeOverwrite $data (deepCopy ($c.config | default dict)) | toJson -}}
{{- end -}}
