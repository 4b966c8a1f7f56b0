{{/* These templates find what the snippets in controller.config lose. The controller interprets them; templates can only compare the names
of their directives with the table in files/directives.txt. */}}

{{/* Returns the snippets in controller.config that the controller interprets, as JSON: the text by key. */}}
{{- define "k8singress.snippetTexts" -}}
{{- $texts := dict -}}
{{- range $key := list "http-snippet" "server-snippet" "location-snippet" "global-auth-snippet" -}}
{{- with get ($.Values.controller.config | default dict) $key }}{{ $_ := set $texts $key (toString .) }}{{ end -}}
{{- end -}}
{{- toJson $texts -}}
{{- end -}}

{{/* Returns a snippet that only has the directives whose names matter: without comments and quoted texts, without the content of blocks
that contain no directives, and without everything after Lua code, because a text with Lua code is not read. */}}
{{- define "k8singress.bareSnippet" -}}
{{- $text := regexReplaceAll "(^|[\\s;{}(])(\"(\\\\.|[^\"\\\\])*\"|'(\\\\.|[^'\\\\])*'|#[^\\n]*)" . "${1}" -}}
{{- $text = regexReplaceAll "\\$\\{[^{}]*\\}" $text "" -}}
{{- $text = regexReplaceAll "(?s)([a-z_]+_by_lua_block)\\s*\\{.*" $text "${1};" -}}
{{- regexReplaceAll "((^|[\\s;{}])(map|geo|geoip2|split_clients|types|charset_map|upstream|match))(\\s[^;{}]*)?\\{[^{}]*\\}" $text "${1};" -}}
{{- end -}}

{{/* Returns a snippet without its servers. They only exist in http-snippet. A guard closes the port of its server, and nothing else. */}}
{{- define "k8singress.withoutServers" -}}
{{- $text := . -}}
{{- range until 4 -}}
{{- $text = regexReplaceAll "((^|[\\s;{}])(if|location|limit_except)\\s[^;{}]*)\\{[^{}]*\\}" $text "${1};" -}}
{{- end -}}
{{- regexReplaceAll "((^|[\\s;{}])server)\\s*\\{[^{}]*\\}" $text "${1};" -}}
{{- end -}}

{{/* Returns the names of the directives in a bare snippet, as JSON. */}}
{{- define "k8singress.directiveNames" -}}
{{- $names := list -}}
{{- range regexFindAll "(^|[;{}])\\s*[^\\s;{}]+" . -1 -}}
{{- $names = append $names (regexReplaceAll "^[;{}\\s]+" . "" | abbrev 40) -}}
{{- end -}}
{{- uniq $names | toJson -}}
{{- end -}}

{{/* Returns the directives in snippets that have no effect as JSON, by key: closing are the names of directives because of which requests
get 503, and leftOut the names of others that are not supported. */}}
{{- define "k8singress.lostDirectives" -}}
{{- $texts := include "k8singress.snippetTexts" . | fromJson -}}
{{- $classes := dict -}}
{{- if $texts -}}
{{- range .Files.Lines "files/directives.txt" -}}
{{- $row := splitList " " . -}}
{{- if not (hasPrefix "#" .) }}{{ $_ := set $classes (first $row) $row }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $lost := dict "closing" dict "leftOut" dict -}}
{{- range $key, $text := $texts -}}
{{- $bare := include "k8singress.bareSnippet" $text -}}
{{- $outside := ternary (include "k8singress.withoutServers" $bare) $bare (eq $key "http-snippet") | include "k8singress.directiveNames" | fromJsonArray -}}
{{- $column := ternary 2 1 (eq $key "global-auth-snippet") -}}
{{- $closing := list -}}
{{- $leftOut := list -}}
{{- range $name := include "k8singress.directiveNames" $bare | fromJsonArray -}}
{{- $class := index (get $classes $name | default (list $name "unreadable" "unreadable")) $column -}}
{{- if or (eq $class "unreadable") (and (eq $class "guard") (has $name $outside)) -}}
{{- $closing = append $closing $name -}}
{{- else if has $class (list "guard" "left-out") -}}
{{- $leftOut = append $leftOut $name -}}
{{- end -}}
{{- end -}}
{{- with $closing }}{{ $_ := set $lost.closing $key . }}{{ end -}}
{{- with $leftOut }}{{ $_ := set $lost.leftOut $key . }}{{ end -}}
{{- end -}}
{{- toJson $lost -}}
{{- end -}}

{{/* Returns at most eight names for NOTES, joined by commas. */}}
{{- define "k8singress.shownFew" -}}
{{- if gt (len .) 8 }}{{ include "k8singress.shownList" (slice . 0 8) }} and {{ sub (len .) 8 }} more{{ else }}{{ include "k8singress.shownList" . }}{{ end -}}
{{- end -}}

{{/* Returns the snippets that make requests get 503, in the form of unguarded. */}}
{{- define "k8singress.closingSnippets" -}}
{{- $all := list -}}
{{- range $key, $names := (include "k8singress.lostDirectives" . | fromJson).closing -}}
{{- $requests := ternary "requests to which global-auth-url applies" "requests" (eq $key "global-auth-snippet") -}}
{{- $all = append $all (dict "paths" (list (printf "controller.config.%s" $key)) "says" (printf "%s get 503, because these directives do not exist, or are not supported and may reject clients: %s; remove them, or see docs/snippets.md" $requests (include "k8singress.shownFew" $names))) -}}
{{- end -}}
{{- toJson $all -}}
{{- end -}}
