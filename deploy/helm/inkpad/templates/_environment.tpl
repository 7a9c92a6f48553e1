{{/* Secrets by process: the required ones, then those that may be missing in the Secret. */}}
{{- define "inkpad.secrets" -}}
shared:
  required: [DATABASE_URL, MASTER_KEY]
  optional: [EVENT_STORE_URL, MASTER_KEY_PREVIOUS, OUTBOUND_PROXY_URL, SMS_TOKEN, GOOGLE_WALLET_KEY, APPLE_PASS_CERT, APPLE_PASS_KEY, APPLE_PASS_KEY_PASSPHRASE, APPLE_WWDR_CERT]
api:
  required: []
  optional: [DATABASE_READ_URL, REDIS_URL, OIDC_CLIENT_SECRET]
dispatcher:
  required: []
  optional: [SMTP_URL, BOUNCE_MAILBOX_URL, GEOCODER_KEY, APNS_KEY, CHECKPOINT_KEY]
migrate:
  required: [DATABASE_URL, DATABASE_MIGRATION_URL]
  optional: []
event-store-access:
  required: [EVENT_STORE_URL, EVENT_STORE_ADMIN_URL]
  optional: []
{{- end -}}

{{/* One variable from a Secret. Takes a dict of root, name and optional. */}}
{{- define "inkpad.secretVariable" -}}
{{- $ref := default dict (get .root.Values.secretRefs .name) -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ $ref.name | default (required "existingSecret is required" .root.Values.existingSecret) }}
      key: {{ $ref.key | default .name }}
      {{- if .optional }}
      optional: true
      {{- end }}
{{ end -}}

{{/* The variables of a process. Takes a dict of root and component. */}}
{{- define "inkpad.environment" -}}
{{- $root := .root -}}
{{- $component := .component -}}
{{- $secrets := include "inkpad.secrets" . | fromYaml -}}
{{- $isService := has $component (list "api" "dispatcher") -}}
{{- $groups := list (get $secrets $component) -}}
{{- if $isService -}}{{- $groups = prepend $groups $secrets.shared -}}{{- end -}}
{{- range $group := $groups -}}
{{- range $group.required }}
{{ include "inkpad.secretVariable" (dict "root" $root "name" . "optional" false) -}}
{{- end -}}
{{- range $group.optional }}
{{ include "inkpad.secretVariable" (dict "root" $root "name" . "optional" true) -}}
{{- end -}}
{{- end -}}
{{- if $isService -}}
{{- $_ := required "settings.PUBLIC_URL is required, such as https://cards.example" $root.Values.settings.PUBLIC_URL -}}
{{- range $name, $value := $root.Values.settings -}}
{{- $isDispatchers := has $name (list "APNS_KEY_ID" "CHECKPOINT_MAIL_TO") -}}
{{- if and (not (kindIs "invalid" $value)) (or (eq $component "dispatcher") (not $isDispatchers)) }}
- name: {{ $name }}
  value: {{ include "inkpad.text" (dict "root" $root "name" $name "value" $value) | quote }}
{{- end -}}
{{- end -}}
{{- if and (eq $component "dispatcher") $root.Values.dispatcher.checkpointsClaim }}
- name: CHECKPOINT_DIR
  value: /checkpoints
{{- end -}}
{{- with (get $root.Values $component).extraEnv }}
{{ toYaml . }}
{{- end -}}
{{- else -}}
{{- /* Jobs connect to the same databases, and write to the same log. */ -}}
{{- range $name := list "LOG_FORMAT" "NODE_EXTRA_CA_CERTS" -}}
{{- $value := get $root.Values.settings $name -}}
{{- if $value }}
- name: {{ $name }}
  value: {{ include "inkpad.text" (dict "root" $root "name" $name "value" $value) | quote }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
The text of a setting. Takes a dict of root, name and value. Helm reads the numbers of a values file as floats: 00123 as 83,
1E5 as 100000, and what has more than 15 digits as another number. So only settings that are numbers may be written as one.
*/}}
{{- define "inkpad.text" -}}
{{- $numbers := .root.Files.Get "files/numbers.json" | fromJsonArray -}}
{{- if not (kindIs "float64" .value) -}}
{{- .value -}}
{{- else if not (has .name $numbers) -}}
{{- fail (printf "settings.%s must be in quotation marks: Helm reads it as a number, which may change it" .name) -}}
{{- else if or (ne (floor .value) .value) (ge (float64 .value) 9007199254740992.0) (le (float64 .value) -9007199254740992.0) -}}
{{- fail (printf "settings.%s must be a whole number below 2^53, or in quotation marks" .name) -}}
{{- else -}}
{{- .value | int64 -}}
{{- end -}}
{{- end -}}
