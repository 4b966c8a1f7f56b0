{{/* These templates choose the image. Values of ingress-nginx's chart may name its image, only its tag, or a registry that has no image
of k8singress. imageIsNginx and registryIsNginx return "true" if such a value must be ignored. */}}

{{/* Returns the image that the values name, or nothing. Copies of ingress-nginx in other registries have names such as
mirror/ingress-nginx/controller, rancher/nginx-ingress-controller and k8s/ingress-nginx-controller. */}}
{{- define "k8singress.imagePath" -}}
{{- .Values.controller.image.repository | default .Values.controller.image.image -}}
{{- end -}}

{{/* ownRegistry and ownPath return the registry and the path of our image. A release writes them into Chart.yaml. */}}
{{- define "k8singress.ownRegistry" -}}
{{- index .Chart.Annotations "k8singress.io/image" | splitList "/" | first -}}
{{- end -}}

{{- define "k8singress.ownPath" -}}
{{- index .Chart.Annotations "k8singress.io/image" | splitList "/" | rest | join "/" -}}
{{- end -}}

{{- define "k8singress.imageIsNginx" -}}
{{- $path := include "k8singress.imagePath" . -}}
{{- $tag := toString .Values.controller.image.tag -}}
{{- if or (regexMatch "(^|/)(controller|controller-chroot|([a-z0-9]+[-_.]+)*(ingress-nginx|nginx-ingress)([-_.]+controller[^/]*)?)$" $path)
      (and (not $path) (ne $tag .Chart.AppVersion) (regexMatch "^v[01][.][0-9]+[.][0-9]+" $tag)) -}}
true
{{- end -}}
{{- end -}}

{{/* Returns "true" if the pods run our own image, and not one that the values name. */}}
{{- define "k8singress.usesOwnImage" -}}
{{- if or (include "k8singress.imageIsNginx" .) (not (include "k8singress.imagePath" .)) }}true{{ end -}}
{{- end -}}

{{- define "k8singress.registryIsNginx" -}}
{{- $named := .Values.controller.image.registry | default .Values.global.image.registry -}}
{{- $theirs := has $named (list "registry.k8s.io" "k8s.gcr.io" "us.gcr.io" "eu.gcr.io" "asia.gcr.io" "quay.io") -}}
{{- if and $theirs (or (not (include "k8singress.imagePath" .)) (include "k8singress.imageIsNginx" .)) }}true{{ end -}}
{{- end -}}

{{/* Returns the registry of the controller's image: controller.image.registry, global.image.registry, or ours. */}}
{{- define "k8singress.registry" -}}
{{- if include "k8singress.registryIsNginx" . -}}
{{- include "k8singress.ownRegistry" . -}}
{{- else -}}
{{- .Values.controller.image.registry | default .Values.global.image.registry -}}
{{- end -}}
{{- end -}}

{{- define "k8singress.image" -}}
{{- $image := .Values.controller.image -}}
{{- if include "k8singress.imageIsNginx" . -}}
{{- printf "%s/%s:%s" (include "k8singress.registry" .) (include "k8singress.ownPath" .) .Chart.AppVersion -}}
{{- else -}}
{{- $path := $image.image | default (include "k8singress.ownPath" .) -}}
{{- $image.repository | default (printf "%s/%s" (include "k8singress.registry" .) $path) -}}
:{{ $image.tag | default .Chart.AppVersion }}
{{- with $image.digest }}@{{ . }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* Returns "true" if the default backend does not run our image. */}}
{{- define "k8singress.foreignBackend" -}}
{{- $path := .Values.defaultBackend.image.repository | default .Values.defaultBackend.image.image -}}
{{- if and $path (not (regexMatch "(^|/)(defaultbackend(-[a-z0-9]+)?|ingress-nginx-defaultbackend)$" $path)) }}true{{ end -}}
{{- end -}}

{{- define "k8singress.defaultBackendImage" -}}
{{- $image := .Values.defaultBackend.image -}}
{{- if include "k8singress.foreignBackend" . -}}
{{- /* Our registry has no foreign images, so the default is the registry of ingress-nginx's chart. */}}
{{- $shared := .Values.global.image.registry -}}
{{- if eq $shared (include "k8singress.ownRegistry" .) }}{{ $shared = "" }}{{ end -}}
{{- $image.repository | default (printf "%s/%s" ($image.registry | default $shared | default "registry.k8s.io") $image.image) -}}
{{- with $image.tag }}:{{ . }}{{ end -}}
{{- with $image.digest }}@{{ . }}{{ end -}}
{{- else -}}
{{- include "k8singress.image" . -}}
{{- end -}}
{{- end -}}

{{/* Returns the security context of a container from the image values. It takes a dict: image, and add (a list of capabilities). */}}
{{- define "k8singress.containerSecurity" -}}
runAsNonRoot: {{ .image.runAsNonRoot }}
runAsUser: {{ .image.runAsUser | int64 }}
{{- if not (kindIs "invalid" .image.runAsGroup) }}
runAsGroup: {{ .image.runAsGroup | int64 }}
{{- end }}
allowPrivilegeEscalation: {{ .image.allowPrivilegeEscalation }}
readOnlyRootFilesystem: {{ .image.readOnlyRootFilesystem }}
{{- with .image.seccompProfile }}
seccompProfile:
  {{- toYaml . | nindent 2 }}
{{- end }}
capabilities:
  drop: [ALL]
  {{- with .add }}
  add: {{ toJson . }}
  {{- end }}
{{- end -}}

{{/* Returns the security context of the values. Our binary does not start without NET_BIND_SERVICE, so this capability is added if all
are dropped. */}}
{{- define "k8singress.givenSecurity" -}}
{{- $given := deepCopy . -}}
{{- $capabilities := $given.capabilities | default dict -}}
{{- $add := $capabilities.add | default list -}}
{{- if and (has "ALL" ($capabilities.drop | default list)) (not (or (has "ALL" $add) (has "NET_BIND_SERVICE" $add))) -}}
{{- $_ := set $capabilities "add" (append $add "NET_BIND_SERVICE") -}}
{{- end -}}
{{- toYaml $given -}}
{{- end -}}
