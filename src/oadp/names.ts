/** Kubernetes' rules for names (k8s.io/apimachinery/pkg/util/validation), checked before a name is sent anywhere. */

/** RFC 1123 label: what a namespace may be called. */
export function isDnsLabel(text: string): boolean {
  return text.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(text);
}

/** RFC 1123 subdomain: what most objects may be called. */
export function isDnsSubdomain(text: string): boolean {
  return text.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(text);
}

/** A label value that is not empty. */
export function isLabelValue(text: string): boolean {
  return text.length <= 63 && /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/.test(text);
}
