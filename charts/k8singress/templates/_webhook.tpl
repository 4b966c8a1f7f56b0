{{/* These templates describe the admission webhook. Its objects have the names that ingress-nginx's chart gives them. */}}

{{/* Returns where the certificate of the webhook comes from: "own" if the controller makes it, "files" if it is in a Secret that
cert-manager or the user creates, or nothing if there is no webhook. */}}
{{- define "k8singress.webhook" -}}
{{- $w := .Values.controller.admissionWebhooks -}}
{{- $default := and .Values.rbac.create (eq (include "k8singress.rightsSize" .) "cluster") -}}
{{- if ternary $w.enabled $default (kindIs "bool" $w.enabled) -}}
{{- ternary "own" "files" (and (not (empty $w.patch.enabled)) (not $w.certManager.enabled)) -}}
{{- end -}}
{{- end -}}

{{/* Returns the port on which the webhook listens, or nothing if there is no webhook. The flag validating-webhook in extraArgs takes
precedence over the values of the webhook, and enables a webhook without them. */}}
{{- define "k8singress.webhookPort" -}}
{{- $default := "" -}}
{{- if include "k8singress.webhook" . }}{{ $default = include "k8singress.text" .Values.controller.admissionWebhooks.port }}{{ end -}}
{{- $flag := include "k8singress.flagValue" (dict "root" . "name" "validating-webhook" "value" "") -}}
{{- regexFind "[1-9][0-9]*$" $flag | default $default -}}
{{- end -}}

{{/* Returns the name of the ValidatingWebhookConfiguration, and of the Secret with the files. */}}
{{- define "k8singress.webhookName" -}}
{{- printf "%s-%s" (include "k8singress.fullname" .) .Values.controller.admissionWebhooks.name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Returns the name of the Secret with the certificates that the controller makes. */}}
{{- define "k8singress.webhookSecret" -}}
{{- include "k8singress.webhookName" . }}-authority
{{- end -}}

{{- define "k8singress.webhookService" -}}
{{- include "k8singress.controller" . }}-admission
{{- end -}}

{{- define "k8singress.webhookFlags" -}}
{{- $w := .Values.controller.admissionWebhooks -}}
{{- $flags := list -}}
{{- if eq (include "k8singress.webhook" .) "files" -}}
{{- $flags = list (printf "--validating-webhook=:%s" (include "k8singress.text" $w.port)) -}}
{{- $flags = append $flags (printf "--validating-webhook-certificate=%s" $w.certificate) -}}
{{- $flags = append $flags (printf "--validating-webhook-key=%s" $w.key) -}}
{{- end -}}
{{- toJson $flags -}}
{{- end -}}

{{/* Returns the option of the Caddyfile. If the certificate is in files, flags set the option. */}}
{{- define "k8singress.webhookOption" -}}
{{- if eq (include "k8singress.webhook" .) "own" }}
		admission_webhook :{{ include "k8singress.text" .Values.controller.admissionWebhooks.port }} {
			own {{ include "k8singress.webhookName" . }}
		}
{{- end }}
{{- end -}}

{{/* Returns the volume with the files. cert-manager's Secrets have other keys than the ones of ingress-nginx's Job. */}}
{{- define "k8singress.webhookVolume" -}}
{{- $w := .Values.controller.admissionWebhooks -}}
- name: k8singress-webhook
  secret:
    secretName: {{ include "k8singress.webhookName" . }}
    {{- if $w.certManager.enabled }}
    items:
      - key: tls.crt
        path: {{ base $w.certificate }}
      - key: tls.key
        path: {{ base $w.key }}
    {{- end }}
{{- end -}}
