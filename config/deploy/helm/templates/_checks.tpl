{{/* Refuses values that are valid one by one, but not together. */}}
{{- define "weir.checks" -}}
{{- $v := .Values -}}
{{- $backend := $v.settings.BACKEND_TYPE | default "kv" -}}
{{- $secrets := $v.secret.settings -}}
{{- range $variable, $_ := $v.extraEnv -}}
{{- $secrets = append $secrets (trimSuffix "_FILE" $variable) -}}
{{- end -}}
{{- $instances := ternary $v.autoscaling.maxReplicas $v.replicas $v.autoscaling.enabled | int -}}
{{- if not $v.image.repository -}}
{{- fail "image.repository is required: push the image to your registry and set its name, such as registry.example.com/team/weir" -}}
{{- end -}}
{{- if and (eq $backend "memory") (gt $instances 1) -}}
{{- fail "BACKEND_TYPE=memory counts in each instance alone: set autoscaling.enabled=false and replicas=1, or use a cache" -}}
{{- end -}}
{{- if and $v.autoscaling.enabled (gt (int $v.autoscaling.minReplicas) (int $v.autoscaling.maxReplicas)) -}}
{{- fail "autoscaling.minReplicas is greater than autoscaling.maxReplicas" -}}
{{- end -}}
{{- range $secrets -}}
{{- if hasKey $v.settings . -}}
{{- fail (printf "%s is in settings and in secret.settings: remove one of them" .) -}}
{{- end -}}
{{- end -}}
{{- if $v.redis.enabled -}}
{{- if ne $backend "kv" -}}
{{- fail (printf "redis.enabled requires BACKEND_TYPE=kv instead of %s" $backend) -}}
{{- end -}}
{{- if or $v.settings.KV_URL (has "KV_URL" $secrets) -}}
{{- fail "redis.enabled sets KV_URL: remove KV_URL, or set redis.enabled=false" -}}
{{- end -}}
{{- if not (has "KV_AUTH" $secrets) -}}
{{- fail "redis.enabled requires a password: add KV_AUTH to the Secret and to secret.settings" -}}
{{- end -}}
{{- else if and (eq $backend "kv") (not $v.settings.KV_URL) (not (has "KV_URL" $secrets)) -}}
{{- fail "BACKEND_TYPE=kv requires settings.KV_URL, KV_URL in secret.settings, or redis.enabled=true" -}}
{{- end -}}
{{- if and (eq $backend "mc") (not $v.settings.MC_HOST_PORT) (not $v.settings.MC_SRV) -}}
{{- fail "BACKEND_TYPE=mc requires settings.MC_HOST_PORT or settings.MC_SRV" -}}
{{- end -}}
{{- if and $v.rules.files $v.rules.configMap -}}
{{- fail "rules.files and rules.configMap are both set: remove one of them" -}}
{{- end -}}
{{- if not (or $v.rules.files $v.rules.configMap (eq ($v.settings.CONFIG_TYPE | default "FILE") "GRPC_XDS_SOTW")) -}}
{{- fail "rules are required: set rules.files, such as with --set-file 'rules.files.shop\\.yaml=shop.yaml', or rules.configMap" -}}
{{- end -}}
{{- if and $v.workflows.files $v.workflows.configMap -}}
{{- fail "workflows.files and workflows.configMap are both set: remove one of them" -}}
{{- end -}}
{{- if has "WEBHOOK_STORE" $secrets -}}
{{- if not (has "WEBHOOK_ENCRYPTION_KEY" $secrets) -}}
{{- fail "WEBHOOK_STORE requires an encryption key: add WEBHOOK_ENCRYPTION_KEY to the Secret and to secret.settings" -}}
{{- end -}}
{{- else if or $v.workflows.files $v.workflows.configMap -}}
{{- fail "workflows require a store: add WEBHOOK_STORE, the address of PostgreSQL, to the Secret and to secret.settings" -}}
{{- end -}}
{{- $isElsewhere := or (has "WEBHOOK_STORE" $secrets) (and (ne $backend "memory") (not $v.redis.enabled)) -}}
{{- if and $v.networkPolicy.enabled $isElsewhere (not $v.networkPolicy.egress) -}}
{{- fail "networkPolicy.egress is required: allow the connections to your cache and to PostgreSQL, or set networkPolicy.enabled=false" -}}
{{- end -}}
{{- if and (or $v.tls.http $v.tls.clientCa) (not $v.tls.secret) -}}
{{- fail "tls.http and tls.clientCa require tls.secret, the name of a Secret with tls.crt and tls.key" -}}
{{- end -}}
{{- if and $v.monitoring.prometheusRule (not $v.monitoring.runbookUrl) -}}
{{- fail "monitoring.prometheusRule requires monitoring.runbookUrl, such as https://git.example.com/weir/blob/v0.3.0" -}}
{{- end -}}
{{- end -}}
