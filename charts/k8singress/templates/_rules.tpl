{{/* These templates find the rules for Prometheus whose expressions find no series, so that their alerts never fire. */}}

{{/* Returns the rules that find no series, as JSON: a list of dicts with the name of the rule, the names of the metrics, and the reason.
Without a reason, the metrics do not exist. */}}
{{- define "k8singress.emptyRules" -}}
{{- $all := list -}}
{{- $m := .Values.controller.metrics -}}
{{- if and $m.enabled $m.prometheusRule.enabled -}}
{{- $rules := $m.prometheusRule.rules | default list -}}
{{- if .Values.k8singress.alerts -}}
{{- range (.Files.Get "files/alerts.yaml" | fromYaml).groups }}{{ $rules = concat $rules .rules }}{{ end -}}
{{- end -}}
{{- $metrics := include "k8singress.metrics" . | fromJson -}}
{{- range $rule := $rules -}}
{{- $found := dict -}}
{{- if kindIs "map" $rule -}}
{{- range include "k8singress.selectors" (toString $rule.expr) | fromJsonArray -}}
{{- $reason := include "k8singress.whyEmpty" (dict "metrics" $metrics "selector" .) -}}
{{- if $reason }}{{ $_ := set $found $reason (append (get $found $reason | default list) .name | uniq) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- range $reason, $names := $found -}}
{{- $all = append $all (dict "rule" ($rule.alert | default $rule.record | default "a rule without a name") "names" $names "says" (trimPrefix "unknown" $reason)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $all -}}
{{- end -}}

{{/* Returns the selectors of our metrics and of ingress-nginx's in an expression, as JSON: dicts with a name and a list of matchers. Names
in quoted texts and in comments are no selectors. */}}
{{- define "k8singress.selectors" -}}
{{- $quoted := "\"(?:\\\\.|[^\"\\\\])*\"|'(?:\\\\.|[^'\\\\])*'|`[^`]*`" -}}
{{- $name := "\\b(?:k8singress|nginx_ingress_controller)_[a-zA-Z0-9_:]*" -}}
{{- $matcher := printf "([a-zA-Z_][a-zA-Z0-9_]*)\\s*(=~|!~|!=|=)\\s*(%s)" $quoted -}}
{{- $all := list -}}
{{- range $text := regexFindAll (printf "%s|#[^\n]*|%s(?:\\s*\\{(?:%s|[^{}\"'`])*\\})?" $quoted $name $quoted) . -1 -}}
{{- if regexMatch "^[kn]" $text -}}
{{- $matchers := list -}}
{{- range regexFindAll $matcher (regexReplaceAll "^[^{]*" $text "") -1 -}}
{{- $value := regexReplaceAll $matcher . "${3}" -}}
{{- if not (hasPrefix "`" $value) }}{{ $value = regexReplaceAll "\\\\(.)" $value "${1}" }}{{ end -}}
{{- $value = substr 1 (sub (len $value) 1 | int) $value -}}
{{- $matchers = append $matchers (dict "label" (regexReplaceAll $matcher . "${1}") "operator" (regexReplaceAll $matcher . "${2}") "value" $value "text" (abbrev 80 .)) -}}
{{- end -}}
{{- $all = append $all (dict "name" (regexFind $name $text | trunc 100) "matchers" $matchers) -}}
{{- end -}}
{{- end -}}
{{- toJson $all -}}
{{- end -}}

{{/* Returns which metrics exist with these values, as JSON: the names of all series, and for each setting that turns series off the value
that does it. The flags in extraArgs take precedence over the block of the option nginx_metrics. */}}
{{- define "k8singress.metrics" -}}
{{- $series := dict -}}
{{- range .Files.Lines "files/series.txt" }}{{ $_ := set $series . true }}{{ end -}}
{{- $metrics := dict "series" $series "excluded" list -}}
{{- $options := .Values.k8singress.options -}}
{{- $block := ternary $options.nginx_metrics dict (kindIs "map" $options.nginx_metrics) -}}
{{- $excluded := $block.exclude | default list -}}
{{- $_ := set $metrics "excludedBy" "k8singress.options.nginx_metrics.exclude" -}}
{{- with include "k8singress.flagValue" (dict "root" . "name" "exclude-socket-metrics" "value" "") -}}
{{- $excluded = splitList "," . -}}
{{- $_ := set $metrics "excludedBy" "controller.extraArgs.exclude-socket-metrics" -}}
{{- end -}}
{{- range kindIs "slice" $excluded | ternary $excluded (list $excluded) -}}
{{- $_ := set $metrics "excluded" (append $metrics.excluded (toString . | trim | trimPrefix "nginx_ingress_controller_")) -}}
{{- end -}}
{{- if has (toString $options.nginx_metrics) (list "off" "false") }}{{ $_ := set $metrics "nginxOff" "k8singress.options.nginx_metrics" }}{{ end -}}
{{- if $options.disable_route_metrics }}{{ $_ := set $metrics "routesOff" "k8singress.options.disable_route_metrics" }}{{ end -}}
{{- if eq (include "k8singress.flagSwitch" (dict "root" . "name" "enable-metrics")) "false" }}{{ $_ := set $metrics "off" "controller.extraArgs.enable-metrics" }}{{ end -}}
{{- range $key, $of := dict "classes" (list "report-status-classes" "true" "status_classes") "withoutHost" (list "metrics-per-host" "false" "without_host") -}}
{{- $flag := include "k8singress.flagSwitch" (dict "root" $ "name" (index $of 0)) -}}
{{- if eq $flag (index $of 1) -}}
{{- $_ := set $metrics $key (printf "controller.extraArgs.%s" (index $of 0)) -}}
{{- else if and (not $flag) (get $block (index $of 2)) -}}
{{- $_ := set $metrics $key (printf "k8singress.options.nginx_metrics.%s" (index $of 2)) -}}
{{- end -}}
{{- end -}}
{{- toJson $metrics -}}
{{- end -}}

{{/* Returns "true" or "false" if extraArgs has a boolean flag, and otherwise nothing. It takes a dict: root, name. */}}
{{- define "k8singress.flagSwitch" -}}
{{- if hasKey .root.Values.controller.extraArgs .name -}}
{{- $value := include "k8singress.flagValue" (dict "root" .root "name" .name "value" "") -}}
{{- ternary "true" "false" (has (lower $value) (list "" "true" "t" "1")) -}}
{{- end -}}
{{- end -}}

{{/* Returns why a selector finds no series, "unknown" if the metric does not exist, or nothing if it may find some. It takes a dict:
metrics, selector. */}}
{{- define "k8singress.whyEmpty" -}}
{{- $m := .metrics -}}
{{- $name := .selector.name -}}
{{- $base := regexReplaceAll "^nginx_ingress_controller_|_(bucket|count|sum)$" $name "" -}}
{{- $ofNginx := hasPrefix "nginx_ingress_controller_" $name -}}
{{- $ofRequests := and $ofNginx (regexMatch "^(requests|(request|response|header|connect)_duration_seconds|re(quest|sponse)_size|bytes_sent)$" $base) -}}
{{- if contains ":" $name -}}
{{- else if not (hasKey $m.series $name) -}}
unknown
{{- else if $m.off -}}
{{ $m.off }} is false: remove it
{{- else if and $ofNginx $m.nginxOff -}}
{{ $m.nginxOff }} is off: remove it
{{- else if and $ofNginx (has $base $m.excluded) -}}
{{ $m.excludedBy }} leaves out {{ $base }}: remove it there
{{- else if and (hasPrefix "k8singress_route_" $name) $m.routesOff -}}
{{ $m.routesOff }} is true: remove it
{{- else -}}
{{- range .selector.matchers -}}
{{- if and (eq .label "status") $ofRequests (not (include "k8singress.matchesAny" (dict "matcher" . "classes" $m.classes))) -}}
no series has {{ .text }}{{ if $m.classes }}, because {{ $m.classes }} is true: write a class such as 4xx, or remove the value{{ else if contains "xx" .value }}: set controller.extraArgs.report-status-classes to true, or write status=~"4.." for all 4xx{{ else }}: the values are status codes such as 404{{ end -}}
{{- break -}}
{{- else if and (eq .label "class") (eq $name "k8singress_route_requests_total") (not (include "k8singress.matchesAny" (dict "matcher" . "classes" "always"))) -}}
no series has {{ .text }}: the classes are 1xx, 2xx, 3xx, 4xx and 5xx
{{- break -}}
{{- else if and (eq .label "host") $ofRequests $m.withoutHost (not (include "k8singress.matchesText" (dict "matcher" . "texts" ""))) -}}
no series has {{ .text }}, because there is no label host: {{ ternary "remove" "set" (hasPrefix "k8singress." $m.withoutHost) }} {{ $m.withoutHost }}{{ ternary "" " to true" (hasPrefix "k8singress." $m.withoutHost) }}, or remove the matcher
{{- break -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Returns "true" if a matcher selects any status, or any class if classes is set. It takes a dict: matcher, classes. */}}
{{- define "k8singress.matchesAny" -}}
{{- $texts := ternary (splitList " " "1xx 2xx 3xx 4xx 5xx") (untilStep 100 600 1) (not (empty .classes)) -}}
{{- if or (hasPrefix "!" .matcher.operator) (include "k8singress.matchesText" (dict "matcher" .matcher "texts" (join "\n" $texts))) }}true{{ end -}}
{{- end -}}

{{/* Returns "true" if a matcher selects one of several values. It takes a dict: matcher, and texts (lines with one value each). */}}
{{- define "k8singress.matchesText" -}}
{{- $pattern := ternary .matcher.value (regexQuoteMeta .matcher.value) (contains "~" .matcher.operator) -}}
{{- $matches := regexMatch (printf "(?m)^(?:%s)$" $pattern) .texts -}}
{{- if ne $matches (hasPrefix "!" .matcher.operator) }}true{{ end -}}
{{- end -}}
