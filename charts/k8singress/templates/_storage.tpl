{{/* RBAC cannot name Secrets that do not exist yet, so `storage kubernetes` may change all Secrets of its namespace. For this reason, it
has a separate namespace. */}}

{{/* Returns "true" if certificates are stored in Secrets. */}}
{{- define "k8singress.storesSecrets" -}}
{{- if regexMatch "^kubernetes(\\s|$)" (toString .Values.k8singress.storage | trim) }}true{{ end -}}
{{- end -}}

{{/* Returns "true" if the chart writes the options of the storage. It does not if k8singress.storage already has a block of options. */}}
{{- define "k8singress.writesStorage" -}}
{{- if eq (toString .Values.k8singress.storage | trim) "kubernetes" }}true{{ end -}}
{{- end -}}

{{/* Returns the namespace of the Secrets. It defaults to the release's namespace if the chart creates no Roles, or no cluster-scoped
objects, because then the user may not be allowed to create a namespace. */}}
{{- define "k8singress.storageNamespace" -}}
{{- $own := include "k8singress.namespace" . -}}
{{- $name := tpl (.Values.k8singress.storageNamespace.name | default "") . -}}
{{- if not (include "k8singress.writesStorage" .) -}}
{{- regexReplaceAll "^namespace\\s+" (regexFind "\\bnamespace\\s+\\S+" .Values.k8singress.storage) "" | default $own -}}
{{- else if $name -}}
{{- $name -}}
{{- else if and .Values.rbac.create (or (eq (include "k8singress.rightsSize" .) "cluster") .Values.controller.ingressClassResource.enabled) -}}
{{- include "k8singress.ownStorage" . -}}
{{- else -}}
{{- $own -}}
{{- end -}}
{{- end -}}

{{/* Returns a namespace name that is unique to this release. It contains the release's namespace and name, or one of them if they are
equal. */}}
{{- define "k8singress.ownStorage" -}}
{{- $own := include "k8singress.namespace" . -}}
{{- $full := include "k8singress.fullname" . -}}
{{- $name := printf "%s-storage" (list $own $full | compact | uniq | join "-") -}}
{{- if gt (len $name) 63 }}{{ $name = printf "%s-%s-storage" (trunc 46 $name | trimSuffix "-") (sha256sum $name | trunc 8) }}{{ end -}}
{{- $name -}}
{{- end -}}

{{/* Returns "true" if the chart gives the storage a namespace other than the release's. */}}
{{- define "k8singress.movesStorage" -}}
{{- if and (include "k8singress.writesStorage" .) (ne (include "k8singress.storageNamespace" .) (include "k8singress.namespace" .)) }}true{{ end -}}
{{- end -}}

{{/* Returns "true" if certificates are copied from the namespace of the release, where earlier versions stored them. */}}
{{- define "k8singress.copiesStorage" -}}
{{- if include "k8singress.movesStorage" . -}}
{{- if .Values.k8singress.storageNamespace.copy }}true{{ end -}}
{{- else if regexMatch (printf "\\bcopy_from\\s+%s(\\s|$)" (include "k8singress.namespace" .)) (toString .Values.k8singress.storage) -}}
true
{{- end -}}
{{- end -}}

{{/* Returns the storage and its options for the Caddyfile. */}}
{{- define "k8singress.storage" -}}
{{- if include "k8singress.movesStorage" . -}}
kubernetes {
	namespace {{ include "k8singress.storageNamespace" . }}
{{- if include "k8singress.copiesStorage" . }}
	copy_from {{ include "k8singress.namespace" . }}
{{- end }}
}
{{- else -}}
{{- .Values.k8singress.storage | trim -}}
{{- end -}}
{{- end -}}
