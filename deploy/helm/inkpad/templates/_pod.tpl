{{/* What the pods of all processes share. Takes a dict of root and component. */}}
{{- define "inkpad.podMetadata" -}}
labels:
  {{- include "inkpad.labels" . | nindent 2 }}
  {{- with .root.Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .root.Values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "inkpad.podSpec" -}}
{{- $values := .root.Values -}}
# No process uses Kubernetes' API.
automountServiceAccountToken: false
# A service called metrics or health would otherwise set METRICS_PORT or HEALTH_PORT.
enableServiceLinks: false
{{- with $values.serviceAccountName }}
serviceAccountName: {{ . }}
{{- end }}
{{- with $values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
volumes:
  - name: tmp
    emptyDir: { sizeLimit: 64Mi }
  {{- if and (eq .component "dispatcher") $values.dispatcher.checkpointsClaim }}
  - name: checkpoints
    persistentVolumeClaim: { claimName: {{ $values.dispatcher.checkpointsClaim }} }
  {{- end }}
  {{- with $values.volumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Takes a dict of root, component and program. */}}
{{- define "inkpad.container" -}}
{{- $values := .root.Values -}}
name: {{ .component }}
image: {{ include "inkpad.image" .root | quote }}
imagePullPolicy: {{ $values.image.pullPolicy }}
command: [node, {{ .program }}]
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
env:
  {{- include "inkpad.environment" . | trim | nindent 2 }}
volumeMounts:
  - { name: tmp, mountPath: /tmp }
  {{- if and (eq .component "dispatcher") $values.dispatcher.checkpointsClaim }}
  - { name: checkpoints, mountPath: /checkpoints }
  {{- end }}
  {{- with $values.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "inkpad.topologySpread" -}}
{{- with .root.Values.topologySpread }}
{{- if .enabled }}
topologySpreadConstraints:
  {{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: {{ $.root.Values.topologySpread.whenUnsatisfiable }}
    # Pods of one version: those that are being replaced do not count.
    matchLabelKeys: [pod-template-hash]
    labelSelector:
      matchLabels:
        {{- include "inkpad.selector" $ | nindent 8 }}
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}
