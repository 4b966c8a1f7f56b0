{{- define "k8singress.defaultBackendPod" -}}
{{- $b := .Values.defaultBackend -}}
metadata:
  {{- with $b.podAnnotations }}
  annotations:
    {{- include "k8singress.texts" . | trim | nindent 4 }}
  {{- end }}
  labels:
    {{- $labels := mergeOverwrite (fromYaml (include "k8singress.labels" .)) (deepCopy ($b.labels | default dict)) (deepCopy ($b.podLabels | default dict)) }}
    {{- $_ := set $labels "app.kubernetes.io/component" "default-backend" }}
    {{- toYaml $labels | nindent 4 }}
spec:
  {{- include "k8singress.podFields" (dict "root" . "part" $b) | trim | nindent 2 }}
  {{- with $b.podSecurityContext }}
  securityContext:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  serviceAccountName: {{ include "k8singress.defaultBackendAccount" . }}
  automountServiceAccountToken: {{ include "k8singress.defaultBackendToken" . }}
  terminationGracePeriodSeconds: 60
  containers:
    - {{ include "k8singress.defaultBackendContainer" . | trim | indent 6 | trim }}
  volumes:
    - name: k8singress-caddyfile
      configMap:
        name: {{ include "k8singress.defaultBackend" . }}-caddyfile
    {{- with $b.extraVolumes }}
    {{- tpl (toYaml .) $ | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* Returns "true" if the pods get a service account token. By default, only a foreign image does, because k8singress as a default
backend does not use the API server. */}}
{{- define "k8singress.defaultBackendToken" -}}
{{- $said := .Values.defaultBackend.serviceAccount.automountServiceAccountToken -}}
{{- ternary $said (eq (include "k8singress.foreignBackend" .) "true") (kindIs "bool" $said) -}}
{{- end -}}

{{- define "k8singress.defaultBackendContainer" -}}
{{- $b := .Values.defaultBackend }}
name: {{ include "k8singress.name" . }}-default-backend
image: {{ include "k8singress.defaultBackendImage" . | quote }}
imagePullPolicy: {{ $b.image.pullPolicy }}
{{- if not (include "k8singress.foreignBackend" .) }}
command: [/usr/bin/caddy, run, --config, /etc/caddy/Caddyfile]
{{- else if $b.extraArgs }}
args:
  {{- range $name, $value := $b.extraArgs }}
  - {{ printf "--%s=%s" $name (include "k8singress.text" $value) | trimSuffix "=" | quote }}
  {{- end }}
{{- end }}
{{- /* Our binary has a file capability, and the kernel does not start it without NET_BIND_SERVICE. */}}
securityContext:
  {{- if $b.containerSecurityContext }}
  {{- $given := $b.containerSecurityContext }}
  {{- ternary (toYaml $given) (include "k8singress.givenSecurity" $given) (eq (include "k8singress.foreignBackend" .) "true") | nindent 2 }}
  {{- else }}
  {{- include "k8singress.containerSecurity" (dict "image" $b.image "add" (ternary list (list "NET_BIND_SERVICE") (eq (include "k8singress.foreignBackend" .) "true"))) | nindent 2 }}
  {{- end }}
{{- with $b.extraEnvs }}
env:
  {{- tpl (toYaml .) $ | nindent 2 }}
{{- end }}
ports:
  - name: http
    containerPort: {{ $b.port | int64 }}
    protocol: TCP
{{- range $name := list "livenessProbe" "readinessProbe" }}
{{- $ask := dict "httpGet" (dict "path" "/healthz" "port" (int64 $b.port) "scheme" "HTTP") }}
{{ $name }}:
  {{- toYaml (mergeOverwrite $ask (deepCopy (get $b $name | default dict))) | nindent 2 }}
{{- end }}
{{- with $b.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - name: k8singress-caddyfile
    mountPath: /etc/caddy
    readOnly: true
  {{- with $b.extraVolumeMounts }}
  {{- tpl (toYaml .) $ | nindent 2 }}
  {{- end }}
{{- end -}}
