{{/* These templates set how a pod ends. */}}

{{/* Returns the lifecycle hooks as JSON. A preStop hook that needs a shell or sleep is left out, because the image has no such program. */}}
{{- define "k8singress.lifecycle" -}}
{{- $hooks := tpl (toYaml (.Values.controller.lifecycle | default dict)) . | fromYaml -}}
{{- if include "k8singress.shellHook" . }}{{ $_ := unset $hooks "preStop" }}{{ end -}}
{{- toJson $hooks -}}
{{- end -}}

{{/* Returns what a preStop hook asks a shell to do, or nothing if the hook needs no shell. */}}
{{- define "k8singress.shellHook" -}}
{{- $hooks := tpl (toYaml (.Values.controller.lifecycle | default dict)) . | fromYaml -}}
{{- $command := get (get (get $hooks "preStop" | default dict) "exec" | default dict) "command" | default list -}}
{{- $program := first $command | default "" | toString | base -}}
{{- if eq $program "sleep" -}}
{{- join " " $command -}}
{{- else if has $program (list "sh" "ash" "bash" "dash" "busybox" "env") -}}
{{- $script := "" -}}
{{- range rest $command -}}
{{- $word := toString . -}}
{{- if and (not $script) (not (hasPrefix "-" $word)) (not (has (base $word) (list "sh" "ash" "bash" "dash"))) }}{{ $script = $word }}{{ end -}}
{{- end -}}
{{- $script | default $program -}}
{{- end -}}
{{- end -}}

{{/* Returns the time of a sleep at the beginning of such a hook, such as 15s, or nothing. During this time, load balancers notice that
the pod ends, which is what shutdown_delay is for. */}}
{{- define "k8singress.hookDelay" -}}
{{- $sleep := include "k8singress.shellHook" . | regexFind "^\\s*(/usr)?(/bin/)?sleep\\s+[0-9]+[smh]?\\s*($|[;&|\\n])" -}}
{{- with regexFind "[0-9]+[smh]?" $sleep -}}
{{- if regexMatch "[smh]$" . }}{{ . }}{{ else }}{{ . }}s{{ end -}}
{{- end -}}
{{- end -}}

{{/* Returns a time such as 1m30s in seconds, or nothing if the text is not such a time. */}}
{{- define "k8singress.seconds" -}}
{{- $text := include "k8singress.text" . -}}
{{- if regexMatch "^([0-9]+(h|ms|m|s))+$" $text -}}
{{- $sum := 0 -}}
{{- range regexFindAll "[0-9]+(h|ms|m|s)" $text -1 -}}
{{- $unit := regexFind "[a-z]+" . -}}
{{- $number := trimSuffix $unit . | int64 -}}
{{- $sum = add $sum (ternary (div (add $number 999) 1000) (mul $number (get (dict "h" 3600 "m" 60 "s" 1 "ms" 0) $unit)) (eq $unit "ms")) -}}
{{- end -}}
{{- $sum -}}
{{- end -}}
{{- end -}}

{{/* Returns shutdown_timeout: what remains of terminationGracePeriodSeconds after the hook and shutdown_delay, without the time that the
process takes to end. It returns nothing if the user has set the time, or if the delay is not known. It takes a dict: root, delay. */}}
{{- define "k8singress.shutdownTimeout" -}}
{{- $c := .root.Values.controller -}}
{{- $delay := include "k8singress.seconds" (.delay | default "0s") -}}
{{- if hasKey ($c.extraArgs | default dict) "shutdown-grace-period" -}}
{{- $delay = include "k8singress.flagValue" (dict "root" .root "name" "shutdown-grace-period" "value" "") -}}
{{- end -}}
{{- if and (regexMatch "^[0-9]+$" $delay) (not (contains "grace_period" (.root.Values.k8singress.globalOptions | default ""))) -}}
{{- $hooks := include "k8singress.lifecycle" .root | fromJson -}}
{{- $sleep := get (get (get $hooks "preStop" | default dict) "sleep" | default dict) "seconds" | default 0 -}}
{{- $ending := 5 -}}
{{- sub ($c.terminationGracePeriodSeconds | int64) (add ($delay | int64) ($sleep | int64) $ending) | max 1 }}s
{{- end -}}
{{- end -}}
