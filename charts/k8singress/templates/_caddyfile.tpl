{{/* The Caddyfile: what ingress-nginx has no flag for. */}}
{{- define "k8singress.caddyfile" -}}
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
{{- include "k8singress.option" (dict "name" $name "value" $value) }}
{{- end }}
{{- if not (include "k8singress.http3" .) }}
		http3 off
{{- end }}
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

{{/* The options. With the least rights all Secrets cannot be read, so that those which Ingresses refer to are. */}}
{{- define "k8singress.options" -}}
{{- $options := deepCopy .Values.k8singress.options -}}
{{- if eq (include "k8singress.rightsSize" .) "least" -}}
{{- if eq (toString $options.secrets) "all" -}}
{{- fail "k8singress.options.secrets is all, and rbac.size least lets no one read all Secrets: leave the option out, or take the size namespaces" -}}
{{- end -}}
{{- $_ := set $options "secrets" ($options.secrets | default "referenced") -}}
{{- end -}}
{{- toJson $options -}}
{{- end -}}

{{/* One option, unless its value says that there is none: null, false or an empty text. */}}
{{- define "k8singress.option" -}}
{{- if kindIs "bool" .value -}}
{{- if .value }}
		{{ .name }}
{{- end }}
{{- else if kindIs "slice" .value }}
		{{ .name }} {{ include "k8singress.words" .value }}
{{- else if ne (include "k8singress.text" .value) "" }}
		{{ .name }} {{ include "k8singress.word" .value }}
{{- end }}
{{- end -}}

{{- define "k8singress.words" -}}
{{- $words := list -}}
{{- range . }}{{ $words = append $words (include "k8singress.word" .) }}{{ end -}}
{{- join " " $words -}}
{{- end -}}

{{/* A word of the Caddyfile, in quotes where it would be read as several, as a block, or as a comment. */}}
{{- define "k8singress.word" -}}
{{- $text := include "k8singress.text" . -}}
{{- if or (eq $text "") (regexMatch "[\\s\"`{}#]" $text) -}}
"{{ $text | replace "\"" "\\\"" }}"
{{- else -}}
{{- $text -}}
{{- end -}}
{{- end -}}
