{{/* Returns the labels for selectors. Kubernetes does not allow an upgrade to change them. */}}
{{- define "k8singress.selector" -}}
app.kubernetes.io/name: {{ include "k8singress.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "k8singress.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "k8singress.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: {{ include "k8singress.name" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Returns the metadata of an object. It takes a dict: root, name, component, labels and annotations (lists of maps; later maps take
precedence), and optionally namespace ("" for an object without a namespace). */}}
{{- define "k8singress.metadata" -}}
metadata:
  name: {{ .name }}
  {{- if hasKey . "namespace" }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  {{- else }}
  namespace: {{ include "k8singress.namespace" .root }}
  {{- end }}
  {{- $labels := fromYaml (include "k8singress.labels" .root) }}
  {{- with .component }}
  {{- $_ := set $labels "app.kubernetes.io/component" . }}
  {{- end }}
  {{- range .labels }}
  {{- $labels = mergeOverwrite $labels (deepCopy (. | default dict)) }}
  {{- end }}
  labels:
    {{- toYaml $labels | nindent 4 }}
  {{- $annotations := dict }}
  {{- range .annotations }}
  {{- $annotations = mergeOverwrite $annotations (deepCopy (. | default dict)) }}
  {{- end }}
  {{- with $annotations }}
  annotations:
    {{- include "k8singress.texts" . | trim | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* Returns a map with all values as strings. */}}
{{- define "k8singress.texts" -}}
{{- range $key, $value := . }}
{{ $key | quote }}: {{ include "k8singress.text" $value | quote }}
{{- end }}
{{- end -}}

{{/* Returns a value as a string. Helm parses numbers as floats, and this writes an integer without a fraction or an exponent. */}}
{{- define "k8singress.text" -}}
{{- if kindIs "float64" . -}}
{{- if eq (floor .) . }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- else if not (kindIs "invalid" .) -}}
{{- . -}}
{{- end -}}
{{- end -}}
