{{/* Returns a Service of the controller. It takes a dict: root, name, part (controller.service or controller.service.internal), shared
(controller.service, whose ports are the defaults), labels. */}}
{{- define "k8singress.service" -}}
{{- $s := .part -}}
apiVersion: v1
kind: Service
{{ include "k8singress.metadata" (dict "root" .root "name" .name "component" "controller"
  "labels" (list .root.Values.controller.labels .labels) "annotations" (list $s.annotations)) }}
spec:
  type: {{ $s.type | default .shared.type }}
  {{- include "k8singress.serviceFields" $s | trim | nindent 2 }}
  ports:
    {{- include "k8singress.servicePorts" . | trim | nindent 4 }}
  selector:
    {{- include "k8singress.selector" .root | nindent 4 }}
    app.kubernetes.io/component: controller
{{- end -}}

{{/* Returns the fields of a Service that are left out if their values are empty. */}}
{{- define "k8singress.serviceFields" -}}
{{- $s := . -}}
{{- range $name := list "clusterIP" "clusterIPs" "externalIPs" "externalTrafficPolicy" "loadBalancerIP" "loadBalancerClass"
  "loadBalancerSourceRanges" "sessionAffinity" "trafficDistribution" "ipFamilyPolicy" "ipFamilies" "healthCheckNodePort" }}
{{- with get $s $name }}
{{ $name }}: {{ toJson . }}
{{- end }}
{{- end }}
{{- if kindIs "bool" $s.allocateLoadBalancerNodePorts }}
allocateLoadBalancerNodePorts: {{ $s.allocateLoadBalancerNodePorts }}
{{- end }}
{{- end -}}

{{- define "k8singress.servicePorts" -}}
{{- $ports := mergeOverwrite (deepCopy .shared.ports) (deepCopy (.part.ports | default dict)) -}}
{{- $targets := mergeOverwrite (deepCopy .shared.targetPorts) (deepCopy (.part.targetPorts | default dict)) -}}
{{- $byNode := has (.part.type | default .shared.type) (list "NodePort" "LoadBalancer") -}}
{{- $nodes := ternary (.part.nodePorts | default dict) dict $byNode -}}
{{- range $name, $on := dict "http" .shared.enableHttp "https" .shared.enableHttps }}
{{- if $on }}
- name: {{ $name }}
  port: {{ get $ports $name | int64 }}
  protocol: TCP
  targetPort: {{ include "k8singress.text" (get $targets $name) }}
  {{- if $.part.appProtocol }}
  appProtocol: {{ $name }}
  {{- end }}
  {{- with get $nodes $name }}
  nodePort: {{ . | int64 }}
  {{- end }}
{{- end }}
{{- end }}
{{- if and .shared.enableHttps (include "k8singress.http3" .root) }}
- name: http3
  port: {{ $ports.https | int64 }}
  protocol: UDP
  targetPort: http3
{{- end }}
{{- include "k8singress.streamPorts" (dict "root" .root "key" "port" "nodePorts" $nodes) }}
{{- end -}}
