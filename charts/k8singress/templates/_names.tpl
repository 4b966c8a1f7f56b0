{{/* Names and selectors are built as in ingress-nginx's chart. Selectors cannot change, so an upgrade in place keeps the Service and the
Deployment. */}}

{{- define "k8singress.name" -}}
{{- if .Values.nameOverride -}}
{{- .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if include "k8singress.inPlace" . -}}
ingress-nginx
{{- else -}}
{{- .Chart.Name -}}
{{- end -}}
{{- end -}}

{{/* Returns "true" if the release has replaced ingress-nginx: its objects have the names of ingress-nginx. The result is cached, because
each look-up is a request to the API server. A new installation needs no look-up. */}}
{{- define "k8singress.inPlace" -}}
{{- if not (hasKey .Values.k8singress "inPlace") -}}
{{- $found := "" -}}
{{- if .Release.IsUpgrade -}}
{{- $name := printf "%s-%s" (include "k8singress.fullnameOf" (dict "root" . "name" "ingress-nginx")) .Values.controller.name | trunc 63 | trimSuffix "-" -}}
{{- range $kind := list (list "v1" "Service") (list "apps/v1" "Deployment") (list "apps/v1" "DaemonSet") -}}
{{- if not $found -}}
{{- $labels := dig "metadata" "labels" (dict) (lookup (first $kind) (last $kind) (include "k8singress.namespace" $) $name) | default dict -}}
{{- if and (eq (get $labels "app.kubernetes.io/name") "ingress-nginx") (eq (get $labels "app.kubernetes.io/instance") $.Release.Name) -}}
{{- $found = "true" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $_ := set .Values.k8singress "inPlace" $found -}}
{{- end -}}
{{- .Values.k8singress.inPlace -}}
{{- end -}}

{{/* Returns the prefix of all object names. It takes a dict: root, name (the name of the chart). */}}
{{- define "k8singress.fullnameOf" -}}
{{- if .root.Values.fullnameOverride -}}
{{- .root.Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains .name .root.Release.Name -}}
{{- .root.Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .root.Release.Name .name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "k8singress.fullname" -}}
{{- include "k8singress.fullnameOf" (dict "root" . "name" (include "k8singress.name" .)) -}}
{{- end -}}

{{- define "k8singress.controller" -}}
{{- printf "%s-%s" (include "k8singress.fullname" .) .Values.controller.name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "k8singress.defaultBackend" -}}
{{- printf "%s-%s" (include "k8singress.fullname" .) .Values.defaultBackend.name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "k8singress.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace -}}
{{- end -}}

{{- define "k8singress.electionID" -}}
{{- .Values.controller.electionID | default (printf "%s-leader" (include "k8singress.fullname" .)) -}}
{{- end -}}

{{- define "k8singress.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "k8singress.fullname" .) "default" (not (empty .Values.serviceAccount.create))) -}}
{{- end -}}

{{- define "k8singress.defaultBackendAccount" -}}
{{- $own := printf "%s-backend" (include "k8singress.fullname" .) -}}
{{- .Values.defaultBackend.serviceAccount.name | default (ternary $own "default" (not (empty .Values.defaultBackend.serviceAccount.create))) -}}
{{- end -}}
