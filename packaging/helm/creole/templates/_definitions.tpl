{{- define "creole.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "creole.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "creole.labels" -}}
{{ include "creole.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "creole.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "creole.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "creole.sealSecret" -}}
{{- .Values.seal.existingSecret | default (printf "%s-seal" (include "creole.fullname" .)) -}}
{{- end -}}

{{- /* Whether replicas can serve the same clients: "true" or "". */ -}}
{{- define "creole.allowsReplicas" -}}
{{- if or .Values.state.url .Values.state.statelessClientsOnly -}}true{{- end -}}
{{- end -}}

{{- /* The largest number of replicas, after the check that they can share their clients. */ -}}
{{- define "creole.maxReplicas" -}}
{{- $shared := include "creole.allowsReplicas" . -}}
{{- $usual := ternary 2 1 (eq $shared "true") -}}
{{- $replicas := ternary .Values.autoscaling.maxReplicas (.Values.replicas | default $usual) .Values.autoscaling.enabled | int -}}
{{- if and (gt $replicas 1) (ne $shared "true") -}}
{{- fail (printf "%d replicas need a shared state: without one, a session is known to one replica only, and a client that reaches another one loses it. Set `state.url`, or `state.statelessClientsOnly` if all clients use 2026-07-28, or one replica." $replicas) -}}
{{- end -}}
{{- $replicas -}}
{{- end -}}

{{- /* The flags of `creole serve` and `creole config check`. */ -}}
{{- define "creole.flags" -}}
{{- if .Values.withoutAuthentication }}
- --dangerously-without-auth
{{- end }}
{{- if .Values.metrics.enabled }}
- --insecure-admin
{{- end }}
{{- end -}}

{{- define "creole.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "creole.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop:
    - ALL
{{- end -}}

{{- define "creole.env" -}}
- name: CREOLE_DATA_DIR
  value: /var/lib/creole
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "creole.volumeMounts" -}}
- name: config
  mountPath: /etc/creole
  readOnly: true
- name: secrets
  mountPath: /run/secrets/creole
  readOnly: true
- name: data
  mountPath: /var/lib/creole
- name: temporary
  mountPath: /tmp
{{- if .Values.http.tlsSecret }}
- name: tls
  mountPath: /run/secrets/creole-tls
  readOnly: true
{{- end }}
{{- with .Values.volumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* A probe of this path. The kubelet asks by the address of the pod, which is not an accepted host. */ -}}
{{- define "creole.probe" -}}
httpGet:
  path: {{ .path }}
  port: http
  scheme: {{ ternary "HTTPS" "HTTP" (ne .root.Values.http.tlsSecret "") }}
{{- end -}}

{{- /* The names under which the cluster reaches the service. */ -}}
{{- define "creole.hosts" -}}
{{- $name := include "creole.fullname" . -}}
{{- $inside := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) -}}
{{- concat $inside .Values.http.hosts .Values.ingress.hosts .Values.httpRoute.hostnames | uniq | toJson -}}
{{- end -}}

{{- /* The tables that the chart writes. A replica does not reload them. */ -}}
{{- define "creole.chartConfig" -}}
# Written by the chart.
[http]
listen = "0.0.0.0:8080"
path = {{ .Values.http.path | toJson }}
hosts = {{ include "creole.hosts" . }}
{{- with .Values.http.publicUrl }}
public_url = {{ . | toJson }}
{{- end }}
{{- with .Values.http.origins }}
origins = {{ . | toJson }}
{{- end }}
{{- with .Values.http.trustedProxies }}
trusted_proxies = {{ . | toJson }}
{{- end }}
{{- if .Values.http.tlsSecret }}
tls = { certificate = "/run/secrets/creole-tls/tls.crt", key = "/run/secrets/creole-tls/tls.key" }
{{- end }}

[http.limits]
drain_delay_seconds = {{ .Values.http.drainDelaySeconds | int }}
drain_timeout_seconds = {{ .Values.http.drainTimeoutSeconds | int }}

[state]
{{- with .Values.state.url }}
url = {{ . | toJson }}
{{- end }}
{{- if .Values.state.passwordSecret.name }}
password_file = "/run/secrets/creole/state-password"
{{- end }}
keys_file = "/run/secrets/creole/seal"
{{- if .Values.metrics.enabled }}

[admin]
listen = "0.0.0.0:{{ .Values.metrics.port | int }}"
hosts = ["${POD_IP}"]
console = false
metrics_open = true
{{- end }}
{{- end -}}
