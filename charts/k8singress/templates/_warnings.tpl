{{/* These templates find values with which the controller does something else than ingress-nginx, and that users must know about. NOTES
prints them first. */}}

{{/* Returns a text of the values for NOTES. It is data: control characters are replaced, and its length is limited. */}}
{{- define "k8singress.shown" -}}
{{- $text := toString . -}}
{{- if gt (len $text) 600 }}{{ $text = printf "%s..." (trunc 600 $text) }}{{ end -}}
{{- regexReplaceAll "[\\x00-\\x1f\\x7f-\\x{9f}\\x{200e}\\x{200f}\\x{2028}-\\x{202e}\\x{2066}-\\x{2069}\\x{fffd}]" $text "?" -}}
{{- end -}}

{{/* Returns a list of texts for NOTES, joined by commas. */}}
{{- define "k8singress.shownList" -}}
{{- $all := list -}}
{{- range . }}{{ $all = append $all (include "k8singress.shown" .) }}{{ end -}}
{{- join ", " $all -}}
{{- end -}}

{{/* Returns the guards that are lost, as JSON: dicts with a list of paths and a sentence. */}}
{{- define "k8singress.unguarded" -}}
{{- $all := concat (include "k8singress.firewall" . | fromJsonArray) (include "k8singress.snippets" . | fromJsonArray) -}}
{{- range $reason, $paths := (include "k8singress.remarks" . | fromJson).unguarded -}}
{{- $all = append $all (dict "paths" $paths "says" $reason) -}}
{{- end -}}
{{- concat $all (include "k8singress.unknownKeys" . | fromJsonArray) | toJson -}}
{{- end -}}

{{- define "k8singress.firewall" -}}
{{- $paths := list -}}
{{- range $key := list "enable-modsecurity" "enable-owasp-modsecurity-crs" "modsecurity-snippet" -}}
{{- $value := get ($.Values.controller.config | default dict) $key | toString -}}
{{- if not (has $value (list "" "false" "<nil>")) }}{{ $paths = append $paths (printf "controller.config.%s" $key) }}{{ end -}}
{{- end -}}
{{- if $paths -}}
{{- list (dict "paths" $paths "says" "ModSecurity is not supported, so it detects no attacks; with SecRuleEngine On in modsecurity-snippet, all requests that it would check get 503") | toJson -}}
{{- else -}}
[]
{{- end -}}
{{- end -}}

{{- define "k8singress.snippets" -}}
{{- $all := list -}}
{{- $data := include "k8singress.configData" . | fromJson -}}
{{- $allowed := eq (get $data "allow-snippet-annotations" | toString) "true" -}}
{{- $critical := eq (get $data "annotations-risk-level" | toString) "Critical" -}}
{{- if eq (toString .Values.k8singress.options.snippets) "ignore" -}}
{{- $ignored := list "k8singress.options.snippets" -}}
{{- range $key, $_ := include "k8singress.snippetTexts" . | fromJson }}{{ $ignored = append $ignored (printf "controller.config.%s" $key) }}{{ end -}}
{{- $all = append $all (dict "paths" $ignored "says" "Ingresses are served without their snippets, also if a snippet rejects requests") -}}
{{- else if and $critical (not $allowed) -}}
{{- $all = append $all (dict "paths" (list "controller.config.annotations-risk-level") "says" "Ingresses are served without their snippets, also if a snippet rejects requests, because allow-snippet-annotations is false; set controller.allowSnippetAnnotations to true, or remove annotations-risk-level") -}}
{{- else if and $allowed (not $critical) -}}
{{- $all = append $all (dict "paths" (list "controller.allowSnippetAnnotations") "says" "snippets are not served: all requests for an Ingress with a snippet get 503 until controller.config.annotations-risk-level is Critical") -}}
{{- end -}}
{{- if ne (toString .Values.k8singress.options.snippets) "ignore" -}}
{{- $all = concat $all (include "k8singress.closingSnippets" . | fromJsonArray) -}}
{{- end -}}
{{- $paths := list -}}
{{- range $key := list "main-snippet" "stream-snippet" -}}
{{- if get ($.Values.controller.config | default dict) $key }}{{ $paths = append $paths (printf "controller.config.%s" $key) }}{{ end -}}
{{- end -}}
{{- with $paths -}}
{{- $all = append $all (dict "paths" . "says" "the snippet is never applied; the verdict on the ConfigMap names a setting that replaces each line") -}}
{{- end -}}
{{- toJson $all -}}
{{- end -}}

{{/* Returns the keys of controller.config that do not exist, or that the controller does not support, in the form of unguarded. The table
of keys is in files/keys.txt. */}}
{{- define "k8singress.unknownKeys" -}}
{{- $keys := dict -}}
{{- range .Files.Lines "files/keys.txt" -}}
{{- if and . (not (hasPrefix "#" .)) -}}
{{- $row := regexSplit " " . 3 -}}
{{- $_ := set $keys (first $row) (slice $row 1) -}}
{{- end -}}
{{- end -}}
{{- $candidates := list -}}
{{- range keys $keys }}{{ $candidates = append $candidates (printf "controller.config.%s" .) }}{{ end -}}
{{- $all := list -}}
{{- range $key, $value := .Values.controller.config -}}
{{- $path := printf "controller.config.%s" $key -}}
{{- $row := get $keys $key | default (list "unknown") -}}
{{- if eq (first $row) "unknown" -}}
{{- $meant := include "k8singress.meant" (dict "path" $path "candidates" $candidates) -}}
{{- $all = append $all (dict "paths" (list $path) "says" (printf "this key does not exist, and has no effect%s" (ternary (printf "; did you mean %s?" $meant) "" (ne $meant "")))) -}}
{{- else if and (has (first $row) (list "never" "later" "dead")) (not (has (toString $value) (list "" "false" "<nil>"))) -}}
{{- $all = append $all (dict "paths" (list $path) "says" (printf "this key has no effect%s" (ternary (printf ": %s" (last $row)) "" (gt (len $row) 1)))) -}}
{{- end -}}
{{- end -}}
{{- toJson $all -}}
{{- end -}}
