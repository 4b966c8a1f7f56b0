{{/* Returns "true" if the release has a NetworkPolicy. If the values do not decide it, there is one unless it could block ports that the
chart does not know. */}}
{{- define "k8singress.hasPolicy" -}}
{{- $enabled := .Values.controller.networkPolicy.enabled -}}
{{- if kindIs "bool" $enabled -}}
{{- if $enabled }}true{{ end -}}
{{- else if not (include "k8singress.whyNoPolicy" .) -}}
true
{{- end -}}
{{- end -}}

{{/* Returns the reason why there is no NetworkPolicy by default, or nothing if there is one. */}}
{{- define "k8singress.whyNoPolicy" -}}
{{- $c := .Values.controller -}}
{{- if $c.hostNetwork -}}
controller.hostNetwork is set, and NetworkPolicies do not apply to such pods
{{- else if .Values.k8singress.caddyfile -}}
the chart does not know which ports k8singress.caddyfile opens
{{- else if regexMatch ":[0-9]" (.Values.k8singress.globalOptions | default "") -}}
the chart does not know whether k8singress.globalOptions opens ports
{{- else if or (hasKey $c.extraArgs "tcp-services-configmap") (hasKey $c.extraArgs "udp-services-configmap") -}}
the chart does not know which ports the ConfigMap in controller.extraArgs opens
{{- else -}}
{{- $silent := list -}}
{{- range include "k8singress.sidecars" . | fromYamlArray -}}
{{- if not .ports }}{{ $silent = append $silent .name }}{{ end -}}
{{- end -}}
{{- with $silent -}}
the chart does not know which ports these containers open, since they list none: {{ join ", " . }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Returns the containers that run next to the controller: extraContainers, and init containers with restartPolicy Always. */}}
{{- define "k8singress.sidecars" -}}
{{- $all := tpl (toYaml .Values.controller.extraContainers) . | fromYamlArray -}}
{{- range tpl (toYaml .Values.controller.extraInitContainers) . | fromYamlArray -}}
{{- if eq (toString .restartPolicy) "Always" }}{{ $all = append $all . }}{{ end -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}

{{/* Returns the ports that all peers may reach: all container ports except the port of metrics, and except the port of the webhook if
it has a list of peers; target ports of Services, ports that Service annotations may open, and networkPolicy.ports. */}}
{{- define "k8singress.policyPorts" -}}
{{- $c := .Values.controller -}}
{{- $inner := list (ternary (toString $c.metrics.portName) "" (not (empty $c.metrics.enabled))) (ternary "webhook" "" (kindIs "slice" $c.networkPolicy.webhookFrom)) -}}
{{- range include "k8singress.containerPorts" . | fromYamlArray }}
{{- if not (has (toString .name) $inner) }}
{{- include "k8singress.policyPort" . }}
{{- end }}
{{- end }}
{{- range include "k8singress.sidecars" . | fromYamlArray }}
{{- range .ports }}
{{- include "k8singress.policyPort" . }}
{{- end }}
{{- end }}
{{- range include "k8singress.chosenPorts" . | fromJsonArray }}
{{- include "k8singress.policyPort" . }}
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

{{/* Returns ports that no container lists: the ports in flags, and the numbers in targetPorts. */}}
{{- define "k8singress.chosenPorts" -}}
{{- $all := list -}}
{{- range $flag, $protocols := dict "http-port" (list "TCP") "https-port" (list "TCP" (ternary "UDP" "" (eq (include "k8singress.http3" .) "true"))) -}}
{{- $port := include "k8singress.flagValue" (dict "root" $ "name" $flag "value" "") -}}
{{- range compact $protocols -}}
{{- if $port }}{{ $all = append $all (dict "containerPort" $port "protocol" .) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- range list .Values.controller.service.targetPorts .Values.controller.service.internal.targetPorts -}}
{{- range . -}}
{{- if regexMatch "^[0-9]+$" (include "k8singress.text" .) }}{{ $all = append $all (dict "containerPort" .) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- toJson $all -}}
{{- end -}}

{{/* Returns the ports of probes and metrics that only some peers may reach. It takes a dict: root, and open (the ports that all peers
may reach). */}}
{{- define "k8singress.innerPorts" -}}
{{- $c := .root.Values.controller -}}
{{- $ports := list (include "k8singress.flagValue" (dict "root" .root "name" "healthz-port" "value" 10254)) -}}
{{- if $c.metrics.enabled }}{{ $ports = append $ports $c.metrics.port }}{{ end -}}
{{- range list $c.startupProbe $c.livenessProbe $c.readinessProbe -}}
{{- $probe := . | default dict -}}
{{- range list "httpGet" "tcpSocket" "grpc" -}}
{{- with dig . "port" "" $probe }}{{ $ports = append $ports . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $inner := list -}}
{{- range $ports -}}
{{- $port := include "k8singress.policyPort" (dict "containerPort" .) | fromYamlArray | first -}}
{{- if not (or (has $port $.open) (hasKey $c.containerPort (toString .))) }}{{ $inner = append $inner $port }}{{ end -}}
{{- end -}}
{{- uniq $inner | toYaml -}}
{{- end -}}

{{/* Returns the peers that may reach the ports of probes and metrics. */}}
{{- define "k8singress.innerPeers" -}}
{{- $peers := tpl (toYaml (.Values.controller.networkPolicy.metricsFrom | default list)) . | fromYamlArray -}}
{{- $monitor := .Values.controller.metrics.serviceMonitor -}}
{{- if and $peers .Values.controller.metrics.enabled $monitor.enabled $monitor.namespace -}}
{{- $peers = append $peers (dict "namespaceSelector" (dict "matchLabels" (dict "kubernetes.io/metadata.name" $monitor.namespace))) -}}
{{- end -}}
{{- toYaml $peers -}}
{{- end -}}

{{/* Returns the rule for the port of the webhook, if it has a list of peers. It takes a dict: root, and open (the ports that all peers may
reach). */}}
{{- define "k8singress.webhookRule" -}}
{{- $port := include "k8singress.webhookPort" .root -}}
{{- $ports := include "k8singress.policyPort" (dict "containerPort" $port) | fromYamlArray -}}
{{- if and $port (not (has (first $ports) .open)) -}}
{{- with .root.Values.controller.networkPolicy.webhookFrom -}}
- ports:
    {{- toYaml $ports | nindent 4 }}
  from:
    {{- tpl (toYaml .) $.root | fromYamlArray | toYaml | nindent 4 }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Returns one container port as an entry of a NetworkPolicy. */}}
{{- define "k8singress.policyPort" }}
- port: {{ include "k8singress.text" .containerPort }}
  protocol: {{ .protocol | default "TCP" }}
{{- end -}}
