{{/* Sets each object that is null to an empty one. Helm removes the defaults of a value that is null, and reading a value within it would
be an error. Each file that is not a definition includes this template first. */}}
{{- define "k8singress.fillNulls" -}}
{{- range $path := list
  "global" "global.image" "serviceAccount" "controller.image" "controller.containerPort" "controller.hostPort" "controller.hostPort.ports"
  "controller.tcp" "controller.udp" "controller.scope" "controller.extraArgs" "controller.publishService" "controller.ingressClassResource"
  "controller.autoscaling" "controller.keda" "controller.keda.scaledObject" "controller.networkPolicy"
  "controller.service" "controller.service.external" "controller.service.internal" "controller.service.ports"
  "controller.service.targetPorts" "controller.metrics" "controller.metrics.service" "controller.metrics.serviceMonitor"
  "controller.metrics.prometheusRule" "controller.admissionWebhooks" "controller.admissionWebhooks.service"
  "controller.admissionWebhooks.patch" "controller.admissionWebhooks.certManager" "controller.admissionWebhooks.certManager.rootCert"
  "controller.admissionWebhooks.certManager.admissionCert"
  "defaultBackend" "defaultBackend.image" "defaultBackend.service" "defaultBackend.serviceAccount" "defaultBackend.autoscaling"
  "defaultBackend.networkPolicy"
  "k8singress" "k8singress.options" "k8singress.storageNamespace" "k8singress.dashboard" "k8singress.volumes" -}}
{{- $parent := $.Values -}}
{{- range $name := splitList "." $path -}}
{{- if kindIs "invalid" (index $parent $name) }}{{ $_ := set $parent $name dict }}{{ end -}}
{{- $parent = index $parent $name -}}
{{- end -}}
{{- end -}}
{{- end -}}
