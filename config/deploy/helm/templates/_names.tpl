{{/* The name of all objects, which is also the label that selects the pods. */}}
{{- define "weir.name" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride }}
{{- else if contains "weir" .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-weir" .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "weir.labels" -}}
app.kubernetes.io/name: {{ include "weir.name" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "weir.redisLabels" -}}
app.kubernetes.io/name: {{ include "weir.name" . }}-redis
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* The environment: the settings of the values, then what the chart sets for other values. */}}
{{- define "weir.settings" -}}
{{- $secrets := "/etc/weir/secrets" -}}
{{- range $name, $value := .Values.settings }}
{{ $name }}: {{ $value | quote }}
{{- end }}
{{- if .Values.redis.enabled }}
KV_URL: {{ include "weir.name" . }}-redis:6379
{{- end }}
{{- range .Values.secret.settings }}
{{ . }}_FILE: {{ $secrets }}/{{ . }}
{{- end }}
{{- if or .Values.workflows.files .Values.workflows.configMap }}
WORKFLOW_DIRECTORY: /etc/weir/workflows
{{- end }}
{{- with .Values.tls }}
{{- if .secret }}
GRPC_SERVER_USE_TLS: "true"
GRPC_SERVER_TLS_CERT: /etc/weir/tls/tls.crt
GRPC_SERVER_TLS_KEY: /etc/weir/tls/tls.key
{{- if .clientCa }}
GRPC_CLIENT_TLS_CACERT: /etc/weir/tls/ca.crt
{{- end }}
{{- if .http }}
HTTP_SERVER_USE_TLS: "true"
HTTP_SERVER_TLS_CERT: /etc/weir/tls/tls.crt
HTTP_SERVER_TLS_KEY: /etc/weir/tls/tls.key
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
