const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** Two units as long as the second one matters, like kubectl's AGE column (apimachinery's duration.HumanDuration). */
const scales = [
  { below: 2 * minuteMs, unit: secondMs, letter: 's' },
  { below: 10 * minuteMs, unit: minuteMs, letter: 'm', rest: { unit: secondMs, letter: 's' } },
  { below: 3 * hourMs, unit: minuteMs, letter: 'm' },
  { below: 8 * hourMs, unit: hourMs, letter: 'h', rest: { unit: minuteMs, letter: 'm' } },
  { below: 2 * dayMs, unit: hourMs, letter: 'h' },
  { below: 8 * dayMs, unit: dayMs, letter: 'd', rest: { unit: hourMs, letter: 'h' } },
  { below: Infinity, unit: dayMs, letter: 'd' },
] as const;

/** How long ago something was, in kubectl's words: `45s`, `5m30s`, `3h`, `12d`. A time ahead of us is just now. */
export function formatAge(milliseconds: number): string {
  const age = Math.max(0, milliseconds);
  const scale = scales.find(({ below }) => age < below);
  if (scale === undefined) return '';
  const whole = `${Math.floor(age / scale.unit)}${scale.letter}`;
  if (!('rest' in scale)) return whole;
  const left = Math.floor((age % scale.unit) / scale.rest.unit);
  return left === 0 ? whole : `${whole}${left}${scale.rest.letter}`;
}
