{{/* The ports that a NetworkPolicy lets through: those of all containers, of the readiness probe, those that Services may open, and what the
values add, such as ports of k8singress.caddyfile. */}}
{{- define "k8singress.policyPorts" -}}
{{- $c := .Values.controller -}}
{{- range include "k8singress.containerPorts" . | fromYamlArray }}
{{- include "k8singress.policyPort" . }}
{{- end }}
{{- range tpl (toYaml $c.extraContainers) . | fromYamlArray }}
{{- range .ports }}
{{- include "k8singress.policyPort" . }}
{{- end }}
{{- end }}
{{- with dig "httpGet" "port" "" ($c.readinessProbe | default dict) }}
{{- include "k8singress.policyPort" (dict "containerPort" .) }}
{{- end }}
{{- range $protocol, $ports := dict "TCP" .Values.k8singress.options.service_tcp_ports "UDP" .Values.k8singress.options.service_udp_ports }}
{{- range kindIs "slice" $ports | ternary $ports (list $ports) }}
{{- range include "k8singress.text" . | splitList " " | compact }}
{{- $range := splitList "-" . }}
- port: {{ first $range }}
  {{- if gt (len $range) 1 }}
  endPort: {{ last $range }}
  {{- end }}
  protocol: {{ $protocol }}
{{- end }}
{{- end }}
{{- end }}
{{- with $c.networkPolicy.ports }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* One port of a container. */}}
{{- define "k8singress.policyPort" }}
- port: {{ include "k8singress.text" .containerPort }}
  protocol: {{ .protocol | default "TCP" }}
{{- end -}}
