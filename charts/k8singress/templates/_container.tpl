{{- define "k8singress.container" -}}
{{- $c := .Values.controller }}
name: {{ $c.containerName }}
image: {{ include "k8singress.image" . | quote }}
imagePullPolicy: {{ $c.image.pullPolicy }}
command: [/usr/bin/caddy, k8singress, run, --config, /etc/caddy/Caddyfile]
args:
  {{- include "k8singress.args" . | nindent 2 }}
securityContext:
  {{- if $c.containerSecurityContext }}
  {{- include "k8singress.givenSecurity" $c.containerSecurityContext | nindent 2 }}
  {{- else }}
  {{- include "k8singress.containerSecurity" (dict "image" $c.image "add" (list "NET_BIND_SERVICE")) | nindent 2 }}
  {{- end }}
env:
  - name: POD_NAME
    valueFrom:
      fieldRef:
        fieldPath: metadata.name
  - name: POD_NAMESPACE
    valueFrom:
      fieldRef:
        fieldPath: metadata.namespace
  # If pods have no such label, the variable is empty, and topology-aware routing is off.
  - name: ZONE
    valueFrom:
      fieldRef:
        fieldPath: metadata.labels['topology.kubernetes.io/zone']
  - name: XDG_DATA_HOME
    value: /data
  - name: XDG_CONFIG_HOME
    value: /data
  {{- with $c.extraEnvs }}
  {{- tpl (toYaml .) $ | nindent 2 }}
  {{- end }}
ports:
  {{- include "k8singress.containerPorts" . | trim | nindent 2 }}
{{- include "k8singress.probes" . }}
{{- range $name, $value := dict "lifecycle" (include "k8singress.lifecycle" . | fromJson) "resources" (include "k8singress.resources" . | fromYaml) "resizePolicy" $c.resizePolicy }}
{{- with $value }}
{{ $name }}:
  {{- tpl (toYaml .) $ | nindent 2 }}
{{- end }}
{{- end }}
volumeMounts:
  {{- include "k8singress.volumeMounts" . | trim | nindent 2 }}
{{- end -}}

{{/* Returns the resources. The API server rejects a memory request above the limit. Values of ingress-nginx's chart may set a request
above our default limit, or a limit below our default request. Then the default is replaced with the user's value. */}}
{{- define "k8singress.resources" -}}
{{- $r := tpl (toYaml (.Values.controller.resources | default dict)) . | fromYaml -}}
{{- $limit := dig "limits" "memory" "" $r -}}
{{- $request := dig "requests" "memory" "" $r -}}
{{- $bytes := include "k8singress.bytes" $limit -}}
{{- $requested := include "k8singress.bytes" $request -}}
{{- if and $bytes $requested -}}
{{- if gt (float64 $requested) (float64 $bytes) -}}
{{- if eq (toString $limit) "1Gi" }}{{ $_ := set $r.limits "memory" $request }}{{ else }}{{ $_ := set $r.requests "memory" $limit }}{{ end -}}
{{- end -}}
{{- end -}}
{{- toYaml $r -}}
{{- end -}}

{{/* Returns a Kubernetes quantity in bytes, or nothing if its unit is not a usual unit of memory. */}}
{{- define "k8singress.bytes" -}}
{{- $text := include "k8singress.text" . -}}
{{- $unit := regexFind "[a-zA-Z]*$" $text -}}
{{- $units := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- if and (regexMatch "^[0-9]+(\\.[0-9]+)?[a-zA-Z]*$" $text) (hasKey $units $unit) -}}
{{- mulf (trimSuffix $unit $text | float64) (get $units $unit) -}}
{{- end -}}
{{- end -}}

{{/* Returns the probes. A readiness probe for /healthz, the default of ingress-nginx, is changed to /readyz. */}}
{{- define "k8singress.probes" -}}
{{- $c := .Values.controller -}}
{{- range $name := list "startupProbe" "livenessProbe" "readinessProbe" }}
{{- $probe := deepCopy (get $c $name | default dict) }}
{{- if and (eq $name "readinessProbe") (eq (dig "httpGet" "path" "" $probe) "/healthz") }}
{{- $_ := set $probe.httpGet "path" "/readyz" }}
{{- end }}
{{- with $probe }}
{{ $name }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Returns "true" if HTTP/3 is on. By default, it is on only with ports of the nodes and without a Service of type LoadBalancer,
because a load balancer may not forward UDP. */}}
{{- define "k8singress.http3" -}}
{{- $s := .Values.controller.service -}}
{{- if kindIs "bool" $s.enableHttp3 -}}
{{- if $s.enableHttp3 }}true{{ end -}}
{{- else if and (or .Values.controller.hostNetwork .Values.controller.hostPort.enabled) (or (not $s.enabled) (ne $s.type "LoadBalancer")) -}}
true
{{- end -}}
{{- end -}}

{{- define "k8singress.containerPorts" -}}
{{- $c := .Values.controller -}}
{{- range $name, $port := $c.containerPort }}
- name: {{ $name }}
  containerPort: {{ $port | int64 }}
  protocol: TCP
  {{- with get (ternary $c.hostPort.ports dict (not (empty $c.hostPort.enabled))) $name }}
  hostPort: {{ . | int64 }}
  {{- end }}
{{- end }}
{{- if and (include "k8singress.http3" .) $c.containerPort.https }}
- name: http3
  containerPort: {{ $c.containerPort.https | int64 }}
  protocol: UDP
  {{- with (ternary $c.hostPort.ports dict (not (empty $c.hostPort.enabled))).https }}
  hostPort: {{ . | int64 }}
  {{- end }}
{{- end }}
{{- if $c.metrics.enabled }}
- name: {{ $c.metrics.portName }}
  containerPort: {{ $c.metrics.port | int64 }}
  protocol: TCP
{{- end }}
{{- with include "k8singress.webhookPort" . }}
- name: webhook
  containerPort: {{ . }}
  protocol: TCP
{{- end }}
{{- include "k8singress.streamPorts" (dict "root" . "key" "containerPort" "hostPort" $c.hostPort.enabled) }}
{{- end -}}

{{/* Returns the TCP and UDP ports of the values tcp and udp. It takes a dict: root, key (containerPort, or port for a Service),
hostPort (whether to use ports of the node), nodePorts. */}}
{{- define "k8singress.streamPorts" -}}
{{- range $protocol, $ports := dict "tcp" .root.Values.tcp "udp" .root.Values.udp }}
{{- range $port, $target := $ports }}
{{- $name := printf "%s%v-%s" (empty $.root.Values.portNamePrefix | ternary "" (printf "%v-" $.root.Values.portNamePrefix)) $port $protocol }}
- name: {{ $name }}
  {{ $.key }}: {{ $port }}
  protocol: {{ upper $protocol }}
  {{- if $.hostPort }}
  hostPort: {{ $port }}
  {{- end }}
  {{- if eq $.key "port" }}
  targetPort: {{ $name }}
  {{- end }}
  {{- with get (get ($.nodePorts | default dict) $protocol | default dict) $port }}
  nodePort: {{ . | int64 }}
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Returns the volume mounts. A mount in extraVolumeMounts replaces the chart's mount at the same path. */}}
{{- define "k8singress.volumeMounts" -}}
{{- $taken := list -}}
{{- range .Values.controller.extraVolumeMounts }}{{ $taken = append $taken (trimSuffix "/" .mountPath) }}{{ end -}}
{{- range $name, $path := dict "caddyfile" "/etc/caddy" "data" "/data" "run" "/run/caddy" "tmp" "/tmp" }}
{{- if not (has $path $taken) }}
- name: k8singress-{{ $name }}
  mountPath: {{ $path }}
  {{- if eq $name "caddyfile" }}
  readOnly: true
  {{- end }}
{{- end }}
{{- end }}
{{- if and (eq (include "k8singress.webhook" .) "files") (not (has "/usr/local/certificates" $taken)) }}
- name: k8singress-webhook
  mountPath: /usr/local/certificates
  readOnly: true
{{- end }}
{{- with .Values.controller.extraVolumeMounts }}
{{ tpl (toYaml .) $ }}
{{- end }}
{{- end -}}
