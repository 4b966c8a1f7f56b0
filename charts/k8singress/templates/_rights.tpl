{{/* These templates write the Roles from the rules in files/rights, which are generated from the table of kinds that the controller reads
and writes. */}}

{{- define "k8singress.rightsSize" -}}
{{- $size := ternary "namespaces" .Values.rbac.size (and (not (empty .Values.rbac.scope)) (eq .Values.rbac.size "cluster")) -}}
{{- if not (has $size (list "cluster" "namespaces" "least")) -}}
{{- fail (printf "rbac.size is %q: set it to cluster, namespaces or least" $size) -}}
{{- end -}}
{{- $size -}}
{{- end -}}

{{/* Returns the watched namespaces, for sizes with a Role in each of them. */}}
{{- define "k8singress.watched" -}}
{{- $names := .Values.controller.scope.namespace | default (include "k8singress.namespace" .) -}}
{{- if and .Values.rbac.namespaces (not .Values.rbac.scope) }}{{ $names = join "," .Values.rbac.namespaces }}{{ end -}}
{{- $names = include "k8singress.flagValue" (dict "root" . "name" "watch-namespace" "value" $names) -}}
{{- if not $names -}}
{{- fail "controller.extraArgs.watch-namespace is empty, which means all namespaces, but rbac.size gives no rights for all namespaces: name some, or set rbac.size to cluster" -}}
{{- end -}}
{{- toJson (splitList "," $names) -}}
{{- end -}}

{{/* Returns the options in use that need rights of their own. */}}
{{- define "k8singress.parts" -}}
{{- $parts := list "always" "election_id" -}}
{{- if include "k8singress.storesSecrets" . }}{{ $parts = append $parts "storage" }}{{ end -}}
{{- if include "k8singress.copiesStorage" . }}{{ $parts = append $parts "storage_copy" }}{{ end -}}
{{- if .Values.k8singress.options.publish_ports -}}
{{- $service := include "k8singress.publishedService" . -}}
{{- $own := include "k8singress.namespace" . -}}
{{- if and $service (not (hasPrefix (printf "%s/" $own) $service)) -}}
{{- fail (printf "publish_ports can only open ports in a Service of the namespace %s, but --publish-service names %s: remove publish_ports, or name a Service of this namespace" $own $service) -}}
{{- end -}}
{{- $parts = append $parts "publish_ports" -}}
{{- end -}}
{{- if eq (include "k8singress.webhook" .) "own" }}{{ $parts = append $parts "admission_webhook" }}{{ end -}}
{{- $scope := .Values.controller.scope -}}
{{- if or (hasKey .Values.controller.extraArgs "watch-namespace-selector") (and $scope.namespaceSelector (not $scope.enabled)) -}}
{{- $parts = append $parts "namespace_selector" -}}
{{- end -}}
{{- if not (or (include "k8singress.publishedService" .) (hasKey .Values.controller.extraArgs "publish-status-address")) -}}
{{- $parts = append $parts "publish_nodes" -}}
{{- end -}}
{{- toJson $parts -}}
{{- end -}}

{{/* Returns the Service whose addresses are written to the status of Ingresses, including extraArgs. */}}
{{- define "k8singress.publishedService" -}}
{{- include "k8singress.flagValue" (dict "root" . "name" "publish-service" "value" (include "k8singress.publishService" .)) -}}
{{- end -}}

{{/* Returns the objects that flags, options and the ConfigMap name: for each resource, a list of namespace/name. */}}
{{- define "k8singress.named" -}}
{{- $services := list (include "k8singress.publishedService" .) (include "k8singress.backendService" .) -}}
{{- $secrets := list (include "k8singress.flagValue" (dict "root" . "name" "default-ssl-certificate" "value" .Values.k8singress.options.default_certificate)) -}}
{{- range $namespace, $names := .Values.rbac.secretNames -}}
{{- range $names }}{{ $secrets = append $secrets (printf "%s/%s" $namespace .) }}{{ end -}}
{{- end -}}
{{- dict "configmaps" (include "k8singress.namedConfigMaps" . | fromJsonArray) "services" (compact $services) "secrets" (compact $secrets) | toJson -}}
{{- end -}}

{{/* Returns the Service of the default backend, including extraArgs. */}}
{{- define "k8singress.backendService" -}}
{{- $service := .Values.k8singress.options.default_backend -}}
{{- if .Values.defaultBackend.enabled -}}
{{- $service = printf "%s/%s" (include "k8singress.namespace" .) (include "k8singress.defaultBackend" .) -}}
{{- end -}}
{{- include "k8singress.flagValue" (dict "root" . "name" "default-backend-service" "value" $service) -}}
{{- end -}}

{{- define "k8singress.namedConfigMaps" -}}
{{- $maps := list -}}
{{- $own := include "k8singress.configMaps" . | fromJson -}}
{{- range list "configmap" "tcp-services-configmap" "udp-services-configmap" -}}
{{- $maps = append $maps (include "k8singress.flagValue" (dict "root" $ "name" . "value" (get $own .))) -}}
{{- end -}}
{{- $data := include "k8singress.configData" . | fromJson -}}
{{- range list "add-headers" "proxy-set-headers" }}{{ $maps = append $maps (get $data . | toString) }}{{ end -}}
{{- toJson (compact $maps) -}}
{{- end -}}

{{/* Returns the resourceNames of one namespace, by the resourceNamesFrom of rules. It takes a dict: root, namespace. */}}
{{- define "k8singress.resourceNames" -}}
{{- $election := include "k8singress.flagValue" (dict "root" .root "name" "election-id" "value" (include "k8singress.electionID" .root)) -}}
{{- $names := dict "election_id" (list (printf "k8singress-%s" $election)) -}}
{{- range $resource, $paths := include "k8singress.named" .root | fromJson -}}
{{- $here := list -}}
{{- range $paths -}}
{{- if hasPrefix (printf "%s/" $.namespace) . }}{{ $here = append $here (regexReplaceAll ":.*$" (splitList "/" . | last) "") }}{{ end -}}
{{- end -}}
{{- $_ := set $names $resource ($here | uniq) -}}
{{- end -}}
{{- $_ := set $names "admission_webhook" (list (include "k8singress.webhookName" .root)) -}}
{{- $_ := set $names "admission_secret" (list (include "k8singress.webhookSecret" .root)) -}}
{{- $_ := set $names "publish_service" (list (include "k8singress.publishedService" .root | splitList "/" | last) | compact) -}}
{{- toJson $names -}}
{{- end -}}

{{/* Returns the rules of one Role as a list. It takes a dict: root, place (a key of files/rights, such as watched), namespace. */}}
{{- define "k8singress.rules" -}}
{{- $all := .root.Files.Get (printf "files/rights/%s.yaml" (include "k8singress.rightsSize" .root)) | fromYaml -}}
{{- $names := include "k8singress.resourceNames" . | fromJson -}}
{{- $rules := list -}}
{{- range $part := include "k8singress.parts" .root | fromJsonArray -}}
{{- range dig $.place $part (list) $all -}}
{{- if not .resourceNamesFrom -}}
{{- $rules = append $rules . -}}
{{- else if get $names .resourceNamesFrom -}}
{{- $rules = append $rules (omit . "resourceNamesFrom" | merge (dict "resourceNames" (get $names .resourceNamesFrom))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $rules -}}
{{- end -}}

{{/* Returns a Role, or a ClusterRole if namespace is "", and its binding to the controller's service account. It takes a dict: root,
place, name, namespace. */}}
{{- define "k8singress.role" -}}
{{- $kind := ternary "Role" "ClusterRole" (ne .namespace "") -}}
{{- $metadata := include "k8singress.metadata" (dict "root" .root "name" .name "namespace" .namespace "component" "controller") -}}
{{- with include "k8singress.rules" . | fromJsonArray }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
{{ $metadata }}
rules:
  {{- toYaml . | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
{{ $metadata }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $.name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "k8singress.serviceAccount" $.root }}
    namespace: {{ include "k8singress.namespace" $.root }}
{{- end }}
{{- end -}}
