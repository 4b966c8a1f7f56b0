{{/* Returns the pod template of the controller, for the Deployment and the DaemonSet. */}}
{{- define "k8singress.pod" -}}
{{- $c := .Values.controller -}}
metadata:
  annotations:
    {{- $checksum := dict "checksum/caddyfile" (include "k8singress.caddyfile" . | sha256sum) }}
    {{- include "k8singress.texts" (mergeOverwrite (deepCopy ($c.podAnnotations | default dict)) $checksum) | trim | nindent 4 }}
  labels:
    {{- $labels := mergeOverwrite (fromYaml (include "k8singress.labels" .)) (deepCopy ($c.labels | default dict)) (deepCopy ($c.podLabels | default dict)) }}
    {{- $_ := set $labels "app.kubernetes.io/component" "controller" }}
    {{- toYaml $labels | nindent 4 }}
spec:
  {{- include "k8singress.podFields" (dict "root" . "part" $c) | trim | nindent 2 }}
  {{- with include "k8singress.podSecurity" . | fromYaml }}
  securityContext:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  serviceAccountName: {{ include "k8singress.serviceAccount" . }}
  automountServiceAccountToken: {{ .Values.serviceAccount.automountServiceAccountToken }}
  terminationGracePeriodSeconds: {{ $c.terminationGracePeriodSeconds | int64 }}
  {{- if $c.hostNetwork }}
  hostNetwork: true
  {{- end }}
  {{- if $c.shareProcessNamespace }}
  shareProcessNamespace: true
  {{- end }}
  dnsPolicy: {{ $c.dnsPolicy }}
  {{- with $c.dnsConfig }}
  dnsConfig:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $c.hostAliases }}
  hostAliases:
    {{- tpl (toYaml .) $ | nindent 4 }}
  {{- end }}
  {{- with $c.hostname }}
  hostname: {{ toYaml . }}
  {{- end }}
  {{- with $c.extraInitContainers }}
  initContainers:
    {{- tpl (toYaml .) $ | nindent 4 }}
  {{- end }}
  containers:
    - {{ include "k8singress.container" . | trim | indent 6 | trim }}
    {{- with $c.extraContainers }}
    {{- tpl (toYaml .) $ | nindent 4 }}
    {{- end }}
  volumes:
    {{- include "k8singress.volumes" . | trim | nindent 4 }}
{{- end -}}

{{/* Returns the pod fields that the controller and the default backend set in the same way. It takes a dict: root, part (a part of the
values). */}}
{{- define "k8singress.podFields" -}}
{{- range $name, $value := dict "imagePullSecrets" .root.Values.imagePullSecrets "nodeSelector" .part.nodeSelector "tolerations" .part.tolerations
  "affinity" .part.affinity "topologySpreadConstraints" .part.topologySpreadConstraints
  "priorityClassName" .part.priorityClassName "runtimeClassName" .part.runtimeClassName }}
{{- with $value }}
{{ $name }}:
  {{- tpl (toYaml .) $.root | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "k8singress.podSecurity" -}}
{{- $context := deepCopy (.Values.controller.podSecurityContext | default dict) -}}
{{- $sysctls := $context.sysctls | default list -}}
{{- range $name, $value := .Values.controller.sysctls -}}
{{- $sysctls = append $sysctls (dict "name" $name "value" (include "k8singress.text" $value)) -}}
{{- end -}}
{{- with $sysctls }}{{ $_ := set $context "sysctls" . }}{{ end -}}
{{- toYaml $context -}}
{{- end -}}

{{/* Returns the volumes of the pod. The rest of the file system is read-only. The names have a prefix, so extraVolumes can use short
names. */}}
{{- define "k8singress.volumes" -}}
- name: k8singress-caddyfile
  configMap:
    name: {{ include "k8singress.fullname" . }}-caddyfile
- name: k8singress-data
  emptyDir:
    sizeLimit: {{ .Values.k8singress.volumes.data }}
- name: k8singress-run
  emptyDir:
    medium: Memory
    sizeLimit: 1Mi
- name: k8singress-tmp
  emptyDir:
    sizeLimit: {{ .Values.k8singress.volumes.tmp }}
{{- if eq (include "k8singress.webhook" .) "files" }}
{{ include "k8singress.webhookVolume" . }}
{{- end }}
{{- with .Values.controller.extraVolumes }}
{{ tpl (toYaml .) $ }}
{{- end }}
{{- end -}}
