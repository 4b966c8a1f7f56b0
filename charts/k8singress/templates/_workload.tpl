{{/* Returns maxUnavailable of a rolling update. With ports of the node, an old pod must end before the new one can start. */}}
{{- define "k8singress.unavailable" -}}
{{- ternary 1 0 (or .Values.controller.hostNetwork .Values.controller.hostPort.enabled | empty | not) -}}
{{- end -}}

{{/* Returns the limit of a PodDisruptionBudget: maxUnavailable if it is set, otherwise minAvailable. It takes a part of the values. */}}
{{- define "k8singress.budget" -}}
{{- if kindIs "invalid" .maxUnavailable -}}
minAvailable: {{ include "k8singress.text" .minAvailable }}
{{- else -}}
maxUnavailable: {{ include "k8singress.text" .maxUnavailable }}
{{- end }}
{{- with .unhealthyPodEvictionPolicy }}
unhealthyPodEvictionPolicy: {{ . }}
{{- end }}
{{- end -}}

{{/* Returns a HorizontalPodAutoscaler. It takes a dict: root, part (a part of the values), name, component, template (more metrics). */}}
{{- define "k8singress.autoscaler" -}}
{{- $a := .part.autoscaling -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
{{ include "k8singress.metadata" (dict "root" .root "name" .name "component" .component "labels" (list .part.labels) "annotations" (list $a.annotations)) }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ .name }}
  minReplicas: {{ $a.minReplicas | int64 }}
  maxReplicas: {{ $a.maxReplicas | int64 }}
  metrics:
    {{- range $resource, $percent := dict "cpu" $a.targetCPUUtilizationPercentage "memory" $a.targetMemoryUtilizationPercentage }}
    {{- with $percent }}
    - type: Resource
      resource:
        name: {{ $resource }}
        target:
          type: Utilization
          averageUtilization: {{ . | int64 }}
    {{- end }}
    {{- end }}
    {{- with .template }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $a.behavior }}
  behavior:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
