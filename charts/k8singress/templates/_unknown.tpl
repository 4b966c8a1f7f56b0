{{/* These templates reject unknown names in k8singress.options and controller.extraArgs, with a suggestion. The schema could reject them, but
its errors have no suggestions. */}}

{{/* Fails if k8singress.options has an option that does not exist, or that another value sets. */}}
{{- define "k8singress.checkOptions" -}}
{{- $replaced := include "k8singress.firstWords" (.Files.Get "files/replaced.txt") | fromJson -}}
{{- $names := include "k8singress.firstWords" (.Files.Get "files/options.txt") | fromJson -}}
{{- range $name, $_ := $replaced }}{{ $_ := unset $names $name }}{{ end -}}
{{- include "k8singress.checkNames" (dict "path" "k8singress.options" "given" .Values.k8singress.options "names" $names "replaced" $replaced "kind" "option") -}}
{{- end -}}

{{/* Fails if controller.extraArgs has a flag that does not exist. */}}
{{- define "k8singress.checkFlags" -}}
{{- $names := include "k8singress.firstWords" (.Files.Get "files/flags.txt") | fromJson -}}
{{- include "k8singress.checkNames" (dict "path" "controller.extraArgs" "given" .Values.controller.extraArgs "names" $names "replaced" dict "kind" "flag") -}}
{{- end -}}

{{/* Returns the lines of a table as JSON: the rest of each line by its first word. */}}
{{- define "k8singress.firstWords" -}}
{{- $words := dict -}}
{{- range splitList "\n" . -}}
{{- if and . (not (hasPrefix "#" .)) }}{{ $_ := set $words (splitList " " . | first) (splitList " " . | rest | join " ") }}{{ end -}}
{{- end -}}
{{- toJson $words -}}
{{- end -}}

{{/* Fails if there are unknown names at a path. It takes a dict: path, given, names, replaced, kind. */}}
{{- define "k8singress.checkNames" -}}
{{- $candidates := list -}}
{{- range $name, $_ := .names }}{{ $candidates = append $candidates (printf "%s.%s" $.path $name) }}{{ end -}}
{{- $lines := list -}}
{{- range $name, $_ := .given | default dict -}}
{{- $path := printf "%s.%s" $.path (include "k8singress.shown" $name | abbrev 100) -}}
{{- if hasKey $.replaced $name -}}
{{- $by := get $.replaced $name -}}
{{- $lines = append $lines (printf "%s: the chart sets this option itself%s" $path (ternary (printf "; use the value %s" $by) "" (ne $by ""))) -}}
{{- else if not (hasKey $.names $name) -}}
{{- $meant := include "k8singress.meant" (dict "path" $path "candidates" $candidates) -}}
{{- $lines = append $lines (printf "%s: there is no such %s%s" $path $.kind (ternary (printf "; did you mean %s?" $meant) "" (ne $meant ""))) -}}
{{- end -}}
{{- end -}}
{{- with $lines }}{{ fail (join "\n" . | printf "\n%s") }}{{ end -}}
{{- end -}}
