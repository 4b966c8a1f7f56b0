{{/* Returns the Caddyfile. It has the settings that ingress-nginx has no flags for. */}}
{{- define "k8singress.caddyfile" -}}
{{- include "k8singress.checkOptions" . -}}
{{- $own := .Values.k8singress -}}
{
{{- with $own.admin }}
	admin {{ . }}
{{- end }}
{{- if $own.storage }}
	storage {{ include "k8singress.storage" . | replace "\n" "\n\t" }}
{{- end }}
{{- with $own.globalOptions }}
	{{ . | trim | replace "\n" "\n\t" }}
{{- end }}
	k8singress {
{{- range $name, $value := include "k8singress.options" . | fromJson }}
{{- include "k8singress.option" (dict "root" $ "name" $name "value" $value) }}
{{- end }}
{{- if not (include "k8singress.http3" .) }}
		http3 off
{{- end }}
{{- include "k8singress.webhookOption" . }}
{{- range $host, $namespaces := $own.hostOwners }}
		host_owner {{ include "k8singress.word" $host }} {{ include "k8singress.words" $namespaces }}
{{- end }}
{{- range $own.issuers }}
		issuer {{ . | trim | replace "\n" "\n\t\t" }}
{{- end }}
{{- range $name, $directives := $own.chains }}
		chain {{ include "k8singress.word" $name }} {
			{{ $directives | trim | replace "\n" "\n\t\t\t" }}
		}
{{- end }}
	}
}
{{- with $own.caddyfile }}
{{ . | trim }}
{{- end }}
{{ end -}}

{{/* Returns the options as JSON. The times of a shutdown follow the settings of the pod. With rbac.size least, the controller cannot read all Secrets, so it reads only the ones that
Ingresses refer to. */}}
{{- define "k8singress.options" -}}
{{- $options := deepCopy .Values.k8singress.options -}}
{{- if eq (include "k8singress.rightsSize" .) "least" -}}
{{- if eq (toString $options.secrets) "all" -}}
{{- fail "k8singress.options.secrets is all, but rbac.size least does not allow reading all Secrets: remove the option, or set rbac.size to namespaces" -}}
{{- end -}}
{{- $_ := set $options "secrets" ($options.secrets | default "referenced") -}}
{{- end -}}
{{- with include "k8singress.hookDelay" . }}{{ $_ := set $options "shutdown_delay" . }}{{ end -}}
{{- if not $options.shutdown_timeout -}}
{{- $_ := set $options "shutdown_timeout" (include "k8singress.shutdownTimeout" (dict "root" . "delay" $options.shutdown_delay)) -}}
{{- end -}}
{{- toJson $options -}}
{{- end -}}

{{/* Returns the lines of one option, or nothing if its value is null or empty. False is "off" if the option has this word, and otherwise
nothing. A map is a block. A list of maps is an option with a block for each name. It takes a dict: root, name, value. */}}
{{- define "k8singress.option" -}}
{{- $value := .value -}}
{{- if and (eq (toString $value) "false") (include "k8singress.hasOff" .) }}{{ $value = "off" }}{{ end -}}
{{- if kindIs "map" $value }}
		{{ .name }}{{ include "k8singress.block" $value }}
{{- else if and (kindIs "slice" $value) (kindIs "map" (first $value)) }}
{{- range $value }}
		{{ $.name }} {{ include "k8singress.word" .name }}{{ omit . "name" | include "k8singress.block" }}
{{- end }}
{{- else }}
{{- include "k8singress.line" (dict "name" .name "value" $value "indent" "\t\t") }}
{{- end }}
{{- end -}}

{{/* Returns "true" if the arguments of an option may be the word off. */}}
{{- define "k8singress.hasOff" -}}
{{- if regexMatch (printf "(?m)^%s .*\\boff\\b" .name) (.root.Files.Get "files/options.txt") }}true{{ end -}}
{{- end -}}

{{/* Returns a block with its settings, or nothing if it has none. The routes of a chain are lines of their own. */}}
{{- define "k8singress.block" -}}
{{- $lines := "" -}}
{{- range $name, $value := . -}}
{{- if eq $name "routes" -}}
{{- $lines = printf "%s\n\t\t\t%s" $lines ($value | trim | replace "\n" "\n\t\t\t") -}}
{{- else -}}
{{- $lines = printf "%s%s" $lines (include "k8singress.line" (dict "name" $name "value" $value "indent" "\t\t\t")) -}}
{{- end -}}
{{- end -}}
{{- if $lines }} {
{{- $lines }}
		}
{{- end -}}
{{- end -}}

{{/* Returns a line with a name and its arguments, or nothing if the value is null, false or empty. It takes a dict: name, value, indent. */}}
{{- define "k8singress.line" -}}
{{- $arguments := "" -}}
{{- if kindIs "slice" .value -}}
{{- $arguments = include "k8singress.words" .value -}}
{{- else if not (kindIs "bool" .value) -}}
{{- if ne (include "k8singress.text" .value) "" }}{{ $arguments = include "k8singress.word" .value }}{{ end -}}
{{- end -}}
{{- if or $arguments (eq (toString .value) "true") -}}
{{- printf "\n%s%s" .indent (trim (printf "%s %s" .name $arguments)) -}}
{{- end -}}
{{- end -}}

{{- define "k8singress.words" -}}
{{- $words := list -}}
{{- range . }}{{ $words = append $words (include "k8singress.word" .) }}{{ end -}}
{{- join " " $words -}}
{{- end -}}

{{/* Returns a value as one argument in the Caddyfile. It adds quotes if the value would otherwise be parsed as several arguments,
as a block or as a comment. */}}
{{- define "k8singress.word" -}}
{{- $text := include "k8singress.text" . -}}
{{- if or (eq $text "") (regexMatch "[\\s\"`{}#]" $text) -}}
"{{ $text | replace "\"" "\\\"" }}"
{{- else -}}
{{- $text -}}
{{- end -}}
{{- end -}}
