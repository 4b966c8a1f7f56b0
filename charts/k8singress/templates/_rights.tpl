{{/* The rights, from files/rights, which is printed from the table of what the controller reads and writes. */}}

{{- define "k8singress.rightsSize" -}}
{{- $size := ternary "namespaces" .Values.rbac.size (and .Values.rbac.scope (eq .Values.rbac.size "cluster")) -}}
{{- if not (has $size (list "cluster" "namespaces" "least")) -}}
{{- fail (printf "rbac.size is %q: it is cluster, namespaces or least" $size) -}}
{{- end -}}
{{- $size -}}
{{- end -}}

{{/* The namespaces that are followed, where there is a Role in each. */}}
{{- define "k8singress.watched" -}}
{{- $names := .Values.controller.scope.namespace | default (include "k8singress.namespace" .) -}}
{{- if and .Values.rbac.namespaces (not .Values.rbac.scope) }}{{ $names = join "," .Values.rbac.namespaces }}{{ end -}}
{{- $names = include "k8singress.flagValue" (dict "root" . "name" "watch-namespace" "value" $names) -}}
{{- if not $names -}}
{{- fail "controller.extraArgs.watch-namespace is empty, which stands for all namespaces, and rbac.size has no rights for these: name some, or take the size cluster" -}}
{{- end -}}
{{- toJson (splitList "," $names) -}}
{{- end -}}

{{/* The options that bring rights with them. */}}
{{- define "k8singress.parts" -}}
{{- $parts := list "always" "election_id" -}}
{{- if include "k8singress.storesSecrets" . }}{{ $parts = append $parts "storage" }}{{ end -}}
{{- if include "k8singress.copiesStorage" . }}{{ $parts = append $parts "storage_copy" }}{{ end -}}
{{- if .Values.k8singress.options.publish_ports -}}
{{- $service := include "k8singress.publishedService" . -}}
{{- $own := include "k8singress.namespace" . -}}
{{- if and $service (not (hasPrefix (printf "%s/" $own) $service)) -}}
{{- fail (printf "publish_ports opens ports in a Service of the namespace %s alone, and --publish-service names %s" $own $service) -}}
{{- end -}}
{{- $parts = append $parts "publish_ports" -}}
{{- end -}}
{{- $scope := .Values.controller.scope -}}
{{- if or (hasKey .Values.controller.extraArgs "watch-namespace-selector") (and $scope.namespaceSelector (not $scope.enabled)) -}}
{{- $parts = append $parts "namespace_selector" -}}
{{- end -}}
{{- if not (or (include "k8singress.publishedService" .) (hasKey .Values.controller.extraArgs "publish-status-address")) -}}
{{- $parts = append $parts "publish_nodes" -}}
{{- end -}}
{{- toJson $parts -}}
{{- end -}}

{{/* The Service whose addresses Ingresses get in the end. */}}
{{- define "k8singress.publishedService" -}}
{{- include "k8singress.flagValue" (dict "root" . "name" "publish-service" "value" (include "k8singress.publishService" .)) -}}
{{- end -}}

{{/* What flags, options and the ConfigMap name, as namespace/name, by the resource. */}}
{{- define "k8singress.named" -}}
{{- $services := list (include "k8singress.publishedService" .) (include "k8singress.backendService" .) -}}
{{- $secrets := list (include "k8singress.flagValue" (dict "root" . "name" "default-ssl-certificate" "value" .Values.k8singress.options.default_certificate)) -}}
{{- range $namespace, $names := .Values.rbac.secretNames -}}
{{- range $names }}{{ $secrets = append $secrets (printf "%s/%s" $namespace .) }}{{ end -}}
{{- end -}}
{{- dict "configmaps" (include "k8singress.namedConfigMaps" . | fromJsonArray) "services" (compact $services) "secrets" (compact $secrets) | toJson -}}
{{- end -}}

{{/* The Service of the default backend in the end. */}}
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

{{/* The resourceNames of one namespace, by what a rule has them from. It takes a dict: root, namespace. */}}
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
{{- $_ := set $names "publish_service" (list (include "k8singress.publishedService" .root | splitList "/" | last) | compact) -}}
{{- toJson $names -}}
{{- end -}}

{{/* The rules of a place for one namespace, as a list. It takes a dict: root, place, namespace. */}}
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

{{/* A Role, or with namespace "" a ClusterRole, and what gives it to the controller. It takes a dict: root, place, name, namespace. */}}
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
