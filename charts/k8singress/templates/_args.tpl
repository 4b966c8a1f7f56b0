{{/* Returns the command line. Values of ingress-nginx's chart become the same flags as there. The flags of extraArgs come last, so
they take precedence. */}}
{{- define "k8singress.args" -}}
{{- include "k8singress.checkFlags" . -}}
{{- $c := .Values.controller -}}
{{- $flags := list -}}
{{- if .Values.defaultBackend.enabled -}}
{{- $flags = append $flags (printf "--default-backend-service=%s/%s" (include "k8singress.namespace" .) (include "k8singress.defaultBackend" .)) -}}
{{- end -}}
{{- with include "k8singress.publishService" . -}}
{{- $flags = append $flags (printf "--publish-service=%s" .) -}}
{{- end -}}
{{- $flags = append $flags (printf "--election-id=%s" (include "k8singress.electionID" .)) -}}
{{- $flags = append $flags (printf "--controller-class=%s" $c.ingressClassResource.controllerValue) -}}
{{- /* If the controller cannot read IngressClasses, it serves only the class with this name. */}}
{{- $byName := and (eq (toString $c.ingressClass) "nginx") (ne (include "k8singress.rightsSize" .) "cluster") -}}
{{- with ternary $c.ingressClassResource.name $c.ingressClass $byName -}}
{{- $flags = append $flags (printf "--ingress-class=%s" .) -}}
{{- end -}}
{{- range $name, $path := include "k8singress.configMaps" . | fromJson -}}
{{- $flags = append $flags (printf "--%s=%s" $name $path) -}}
{{- end -}}
{{- $flags = concat $flags (include "k8singress.scopeFlags" . | fromJsonArray) -}}
{{- $flags = append $flags (printf "--enable-metrics=%v" $c.metrics.enabled) -}}
{{- range list "optionalFlags" "portFlags" "webhookFlags" -}}
{{- $flags = concat $flags (include (printf "k8singress.%s" .) $ | fromJsonArray) -}}
{{- end -}}
{{- /* Flags name the pod's own namespace by an environment variable. So kustomize can change the namespace of all objects without
changing the arguments. */}}
{{- $flags = toJson $flags | replace (printf "=%s/" (include "k8singress.namespace" .)) "=$(POD_NAMESPACE)/" | fromJsonArray -}}
{{- range $name, $value := $c.extraArgs -}}
{{- $text := tpl (include "k8singress.text" $value) $ -}}
{{- $flags = append $flags (ternary (printf "--%s" $name) (printf "--%s=%s" $name $text) (eq $text "")) -}}
{{- end -}}
{{- toYaml $flags -}}
{{- end -}}

{{/* Returns the final value of a flag: the value in extraArgs, or else the chart's own. It takes a dict: root, name, and value (the
chart's own value). */}}
{{- define "k8singress.flagValue" -}}
{{- $text := include "k8singress.text" .value -}}
{{- $given := .root.Values.controller.extraArgs -}}
{{- if hasKey $given .name }}{{ $text = tpl (include "k8singress.text" (get $given .name)) .root }}{{ end -}}
{{- $text | replace "$(POD_NAMESPACE)" (include "k8singress.namespace" .root) -}}
{{- end -}}

{{/* Returns the Service whose addresses are written to the status of Ingresses, unless extraArgs names another one. */}}
{{- define "k8singress.publishService" -}}
{{- $s := .Values.controller.service -}}
{{- $path := .Values.controller.publishService.pathOverride | default (printf "%s/%s" (include "k8singress.namespace" .) (include "k8singress.controller" .)) -}}
{{- if and .Values.controller.publishService.enabled $s.enabled -}}
{{- if $s.external.enabled -}}
{{- $path -}}
{{- else if $s.internal.enabled -}}
{{- $path }}-internal
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Returns the flags for the watched namespaces. Without a ClusterRole, these are the namespaces with Roles. */}}
{{- define "k8singress.scopeFlags" -}}
{{- $flags := list -}}
{{- if ne (include "k8singress.rightsSize" .) "cluster" -}}
{{- $flags = append $flags (printf "--watch-namespace=%s" (include "k8singress.watched" . | fromJsonArray | join ",")) -}}
{{- else if .Values.controller.scope.enabled -}}
{{- $flags = append $flags (printf "--watch-namespace=%s" (.Values.controller.scope.namespace | default (include "k8singress.namespace" .))) -}}
{{- else if .Values.controller.scope.namespaceSelector -}}
{{- $flags = append $flags (printf "--watch-namespace-selector=%s" .Values.controller.scope.namespaceSelector) -}}
{{- end -}}
{{- toJson $flags -}}
{{- end -}}

{{- define "k8singress.optionalFlags" -}}
{{- $c := .Values.controller -}}
{{- $flags := list -}}
{{- if $c.reportNodeInternalIp }}{{ $flags = append $flags "--report-node-internal-ip-address=true" }}{{ end -}}
{{- if $c.healthCheckHost }}{{ $flags = append $flags (printf "--healthz-host=%s" $c.healthCheckHost) }}{{ end -}}
{{- if ne $c.healthCheckPath "/healthz" }}{{ $flags = append $flags (printf "--health-check-path=%s" $c.healthCheckPath) }}{{ end -}}
{{- if $c.ingressClassByName }}{{ $flags = append $flags "--ingress-class-by-name=true" }}{{ end -}}
{{- if $c.watchIngressWithoutClass }}{{ $flags = append $flags "--watch-ingress-without-class=true" }}{{ end -}}
{{- if $c.disableLeaderElection }}{{ $flags = append $flags "--disable-leader-election=true" }}{{ end -}}
{{- if $c.electionTTL }}{{ $flags = append $flags (printf "--election-ttl=%s" $c.electionTTL) }}{{ end -}}
{{- toJson $flags -}}
{{- end -}}

{{/* Returns the flags for the ports in containerPort. If HTTP and HTTPS have the same port, there are no flags; the Service
then sends both to this port. */}}
{{- define "k8singress.portFlags" -}}
{{- $p := .Values.controller.containerPort -}}
{{- $flags := list -}}
{{- if ne (toString $p.http) (toString $p.https) -}}
{{- if and $p.http (ne (toString $p.http) "80") }}{{ $flags = append $flags (printf "--http-port=%s" (include "k8singress.text" $p.http)) }}{{ end -}}
{{- if and $p.https (ne (toString $p.https) "443") }}{{ $flags = append $flags (printf "--https-port=%s" (include "k8singress.text" $p.https)) }}{{ end -}}
{{- end -}}
{{- toJson $flags -}}
{{- end -}}
