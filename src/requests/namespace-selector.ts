import { isLabelKey, isLabelValue, type LabelSelector } from '../kube/label-selector.ts';
import { isJsonObject } from '../kube/json.ts';
import type { JsonObject } from '../kube/resource.ts';
import { listAt, objectAt, textAt } from '../oadp/read.ts';

/**
 * A `LabelSelector` of the Kubernetes API (`matchLabels`, `matchExpressions`) as the text that a list takes for a label
 * selector; undefined for anything else. Each key and value is looked at by itself: put together, `a` with the value
 * `b,c=d` would be two requirements.
 *
 * Source: k8s.io/apimachinery/pkg/apis/meta/v1, LabelSelectorAsSelector.
 */
export function labelSelectorText(selector: unknown): string | undefined {
  if (!isJsonObject(selector)) return undefined;
  const labels = Object.entries(objectAt(selector, 'matchLabels') ?? {}).map(([key, value]) =>
    isLabelKey(key) && isValue(value) ? `${key}=${value}` : undefined,
  );
  const expressions = listAt(selector, 'matchExpressions').map(expressionText);
  const requirements = [...labels, ...expressions];
  return requirements.includes(undefined) ? undefined : requirements.join(',');
}

/**
 * A selector as the API's own LabelSelector; undefined where that has no words for it: for `<` and `>`.
 */
export function labelSelectorObject({ requirements }: LabelSelector): JsonObject | undefined {
  const inWords = requirements.filter(({ operator }) => operator !== 'Gt' && operator !== 'Lt');
  if (inWords.length < requirements.length) return undefined;
  return {
    matchExpressions: inWords.map(({ key, operator, values }) => ({
      key,
      operator,
      ...(values.length > 0 && { values }),
    })),
  };
}

function isValue(value: unknown): value is string {
  return typeof value === 'string' && isLabelValue(value);
}

function expressionText(expression: unknown): string | undefined {
  const key = textAt(expression, 'key') ?? '';
  const values = listAt(expression, 'values');
  if (!isLabelKey(key) || !values.every(isValue)) return undefined;
  const set = `(${values.join(',')})`;
  switch (textAt(expression, 'operator')) {
    case 'In':
      return values.length === 0 ? undefined : `${key} in ${set}`;
    case 'NotIn':
      return values.length === 0 ? undefined : `${key} notin ${set}`;
    case 'Exists':
      return values.length === 0 ? key : undefined;
    case 'DoesNotExist':
      return values.length === 0 ? `!${key}` : undefined;
    default:
      return undefined;
  }
}
