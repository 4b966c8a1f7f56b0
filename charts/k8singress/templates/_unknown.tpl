{{/* These templates reject unknown names in k8singress.options and controller.extraArgs, with a suggestion. The schema could reject them, but
its errors have no suggestions. */}}

{{/* Fails if k8singress.options has an option that does not exist, or that another value sets. */}}
{{- define "k8singress.checkOptions" -}}
{{- include "k8singress.checkNames" (dict "path" "k8singress.options" "given" .Values.k8singress.options "names" (.Files.Get "files/options.txt") "replaced" (.Files.Get "files/replaced.txt") "kind" "option") -}}
{{- end -}}

{{/* Fails if controller.extraArgs has a flag that does not exist. */}}
{{- define "k8singress.checkFlags" -}}
{{- include "k8singress.checkNames" (dict "path" "controller.extraArgs" "given" .Values.controller.extraArgs "names" (.Files.Get "files/flags.txt") "replaced" "" "kind" "flag") -}}
{{- end -}}

{{/* Fails if there are unknown names at a path. It takes a dict: path, given, kind, and two tables whose lines begin with a name: names, and
replaced (with the values that replace the names). */}}
{{- define "k8singress.checkNames" -}}
{{- $lines := list -}}
{{- range $name, $_ := .given | default dict -}}
{{- $path := printf "%s.%s" $.path (include "k8singress.shown" $name | abbrev 100) -}}
{{- $row := printf "(?m)^%s( .*)?$" (regexQuoteMeta $name) -}}
{{- if regexMatch $row $.replaced -}}
{{- $by := regexFind $row $.replaced | trimPrefix $name | trim -}}
{{- $lines = append $lines (printf "%s: the chart sets this option itself%s" $path (ternary (printf "; use the value %s" $by) "" (ne $by ""))) -}}
{{- else if or (hasPrefix "#" $name) (not (regexMatch $row $.names)) -}}
{{- $candidates := list -}}
{{- range regexFindAll "(?m)^[a-z][^ \\n]*" $.names -1 }}{{ $candidates = append $candidates (printf "%s.%s" $.path .) }}{{ end -}}
{{- range regexFindAll "(?m)^[a-z][^ \\n]*" $.replaced -1 }}{{ $candidates = without $candidates (printf "%s.%s" $.path .) }}{{ end -}}
{{- $meant := include "k8singress.meant" (dict "path" $path "candidates" $candidates) -}}
{{- $lines = append $lines (printf "%s: there is no such %s%s" $path $.kind (ternary (printf "; did you mean %s?" $meant) "" (ne $meant ""))) -}}
{{- end -}}
{{- end -}}
{{- with $lines }}{{ fail (join "\n" . | printf "\n%s") }}{{ end -}}
{{- end -}}
