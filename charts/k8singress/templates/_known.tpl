{{/* These templates find values that are ignored or unknown, from the table in known-values.txt. NOTES prints them. */}}

{{/* Returns the table: for each path, a class (honoured, ignored or unguarded) and the reason why the value has no effect. */}}
{{- define "k8singress.known" -}}
{{- $known := dict -}}
{{- range .Files.Lines "known-values.txt" -}}
{{- if and . (not (hasPrefix "#" .)) -}}
{{- $row := regexSplit "\\s+" . 4 -}}
{{- $_ := set $known (first $row) (dict "class" (index $row 2) "reason" (last $row)) -}}
{{- end -}}
{{- end -}}
{{- toJson $known -}}
{{- end -}}

{{/* Returns all paths that have known paths below them. It takes the table. */}}
{{- define "k8singress.inner" -}}
{{- $inner := dict -}}
{{- range $path, $_ := . -}}
{{- $above := "" -}}
{{- range splitList "." $path | initial -}}
{{- $above = printf "%s.%s" $above . | trimPrefix "." -}}
{{- $_ := set $inner $above "" -}}
{{- end -}}
{{- end -}}
{{- toJson $inner -}}
{{- end -}}

{{/* Returns three maps: ignored and unguarded have a list of paths for each reason, and unknown has the suggested path, or "", for each
unknown path. */}}
{{- define "k8singress.remarks" -}}
{{- $known := include "k8singress.known" . | fromJson -}}
{{- $found := dict "ignored" dict "unguarded" dict "unknown" dict -}}
{{- include "k8singress.walk" (dict "values" .Values "path" "" "known" $known "inner" (include "k8singress.inner" $known | fromJson) "found" $found) -}}
{{- toJson $found -}}
{{- end -}}

{{- define "k8singress.walk" -}}
{{- range $key, $value := .values -}}
{{- $path := printf "%s.%s" $.path $key | trimPrefix "." -}}
{{- if and (empty $value) (not (kindIs "bool" $value)) -}}
{{- else if hasKey $.known $path -}}
{{- $row := get $.known $path -}}
{{- if and (hasKey $.found $row.class) (not (and (kindIs "map" $value) (eq (toString (get $value "enabled")) "false"))) -}}
{{- $reasons := get $.found $row.class -}}
{{- $_ := set $reasons $row.reason (append (get $reasons $row.reason | default list) $path) -}}
{{- end -}}
{{- else if and (hasKey $.inner $path) (kindIs "map" $value) -}}
{{- include "k8singress.walk" (dict "values" $value "path" $path "known" $.known "inner" $.inner "found" $.found) -}}
{{- else -}}
{{- $_ := set $.found.unknown $path (include "k8singress.meant" (dict "path" $path "candidates" (concat (keys $.known) (keys $.inner)))) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Returns the known path that the user probably meant: the same name at another path, or the name at the same level that has the most
pairs of letters in common. It takes a dict: path, candidates. Only the beginning of a long name is compared, because this takes time. */}}
{{- define "k8singress.meant" -}}
{{- $name := splitList "." .path | last | lower | trunc 63 -}}
{{- $beside := splitList "." .path | initial | join "." -}}
{{- $best := "" -}}
{{- $most := div (len $name) 2 | max 1 -}}
{{- range .candidates | uniq | sortAlpha -}}
{{- $other := splitList "." . | last | lower -}}
{{- $score := 0 -}}
{{- if eq $other $name -}}
{{- $score = sub 100 (splitList "." . | len) -}}
{{- else if eq $beside (splitList "." . | initial | join ".") -}}
{{- range $i := until (sub (len $name) 1 | max 0 | int) -}}
{{- if contains (substr $i (add $i 2 | int) $name) $other }}{{ $score = add $score 1 }}{{ end -}}
{{- end -}}
{{- if gt (len $other) (mul 2 (len $name) | int) }}{{ $score = 0 }}{{ end -}}
{{- end -}}
{{- if gt (int $score) (int $most) -}}
{{- $most = $score -}}
{{- $best = . -}}
{{- end -}}
{{- end -}}
{{- $best -}}
{{- end -}}
