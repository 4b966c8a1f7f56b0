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
{{- if and .Values.rbac.namespaces (not .Values.rbac.scope) -}}
{{- toJson .Values.rbac.namespaces -}}
{{- else -}}
{{- toJson (list (.Values.controller.scope.namespace | default (include "k8singress.namespace" .))) -}}
{{- end -}}
{{- end -}}

{{/* The options that bring rights with them. */}}
{{- define "k8singress.parts" -}}
{{- $parts := list "always" "election_id" -}}
{{- if regexMatch "^kubernetes(\\s|$)" (toString .Values.k8singress.storage | trim) }}{{ $parts = append $parts "storage" }}{{ end -}}
{{- if .Values.k8singress.options.publish_ports -}}
{{- $service := include "k8singress.publishService" . -}}
{{- $own := include "k8singress.namespace" . -}}
{{- if and $service (not (hasPrefix (printf "%s/" $own) $service)) -}}
{{- fail (printf "publish_ports opens ports in a Service of the namespace %s alone: controller.publishService.pathOverride names %s" $own $service) -}}
{{- end -}}
{{- $parts = append $parts "publish_ports" -}}
{{- end -}}
{{- if and .Values.controller.scope.namespaceSelector (not .Values.controller.scope.enabled) -}}
{{- $parts = append $parts "namespace_selector" -}}
{{- end -}}
{{- if not (or (include "k8singress.publishService" .) (hasKey .Values.controller.extraArgs "publish-status-address")) -}}
{{- $parts = append $parts "publish_nodes" -}}
{{- end -}}
{{- toJson $parts -}}
{{- end -}}

{{/* What flags name, as namespace/name, by the resource. */}}
{{- define "k8singress.named" -}}
{{- $own := include "k8singress.namespace" . -}}
{{- $maps := list -}}
{{- range include "k8singress.configMapFlags" . | fromJsonArray }}{{ $maps = append $maps (splitList "=" . | last) }}{{ end -}}
{{- range $name, $given := dict "custom-add-headers" .Values.controller.addHeaders "custom-proxy-headers" .Values.controller.proxySetHeaders -}}
{{- if $given }}{{ $maps = append $maps (printf "%s/%s-%s" $own (include "k8singress.fullname" $) $name) }}{{ end -}}
{{- end -}}
{{- $services := list (include "k8singress.publishService" .) (get .Values.controller.extraArgs "default-backend-service") -}}
{{- if .Values.defaultBackend.enabled }}{{ $services = append $services (printf "%s/%s" $own (include "k8singress.defaultBackend" .)) }}{{ end -}}
{{- $secrets := list (get .Values.controller.extraArgs "default-ssl-certificate") (get .Values.k8singress.options "default_certificate") -}}
{{- range $namespace, $names := .Values.rbac.secretNames -}}
{{- range $names }}{{ $secrets = append $secrets (printf "%s/%s" $namespace .) }}{{ end -}}
{{- end -}}
{{- dict "configmaps" (compact $maps) "services" (compact $services) "secrets" (compact $secrets) | toJson -}}
{{- end -}}

{{/* The resourceNames of one namespace, by what a rule has them from. It takes a dict: root, namespace. */}}
{{- define "k8singress.resourceNames" -}}
{{- $names := dict "election_id" (list (printf "k8singress-%s" (include "k8singress.electionID" .root))) -}}
{{- range $resource, $paths := include "k8singress.named" .root | fromJson -}}
{{- $here := list -}}
{{- range $paths -}}
{{- if hasPrefix (printf "%s/" $.namespace) . }}{{ $here = append $here (regexReplaceAll ":.*$" (splitList "/" . | last) "") }}{{ end -}}
{{- end -}}
{{- $_ := set $names $resource ($here | uniq) -}}
{{- end -}}
{{- $_ := set $names "publish_service" (list (include "k8singress.publishService" .root | splitList "/" | last) | compact) -}}
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
