{{- /* Names and labels that several objects share. */ -}}

{{- define "anubis.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* What tells the pods of the service apart. Benchmark pods have another component. */ -}}
{{- define "anubis.selector" -}}
app.kubernetes.io/name: anubis
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: service
{{- end -}}

{{- define "anubis.labels" -}}
{{ include "anubis.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "anubis.account" -}}
{{- $default := ternary (include "anubis.fullname" .) "default" .Values.serviceAccount.create -}}
{{- default $default .Values.serviceAccount.name -}}
{{- end -}}

{{- define "anubis.benchmarkAccount" -}}
{{- $own := printf "%s-benchmark" (include "anubis.fullname" .) -}}
{{- $default := ternary $own "default" .Values.benchmarks.serviceAccount.create -}}
{{- default $default .Values.benchmarks.serviceAccount.name -}}
{{- end -}}

{{- define "anubis.benchmarkNamespace" -}}
{{- default .Release.Namespace .Values.benchmarks.namespace -}}
{{- end -}}

{{- define "anubis.image" -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}

{{- define "anubis.claim" -}}
{{- default (include "anubis.fullname" .) .Values.persistence.existingClaim -}}
{{- end -}}

{{- /* What every benchmark pod gets: see the setting kubernetes_pod. */ -}}
{{- define "anubis.pod" -}}
{{- $of := .Values.benchmarks -}}
{{- $spec := dict -}}
{{- if $of.serviceAccount.enforced }}{{ $_ := set $spec "serviceAccountName" (include "anubis.benchmarkAccount" .) }}{{ end -}}
{{- with $of.nodeSelector }}{{ $_ := set $spec "nodeSelector" . }}{{ end -}}
{{- with $of.tolerations }}{{ $_ := set $spec "tolerations" . }}{{ end -}}
{{- with $of.priorityClassName }}{{ $_ := set $spec "priorityClassName" . }}{{ end -}}
{{- with .Values.imagePullSecrets }}{{ $_ := set $spec "imagePullSecrets" . }}{{ end -}}
{{- $pod := dict "spec" $spec -}}
{{- with $of.annotations }}{{ $_ := set $pod "metadata" (dict "annotations" .) }}{{ end -}}
{{- mergeOverwrite $pod (deepCopy $of.pod) | toYaml -}}
{{- end -}}
