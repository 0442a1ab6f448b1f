import type { Explanation, TrailStep } from '../sync/report.ts';
import { cell } from './output.ts';
import { pairs, table, type TableLook } from './table.ts';
import { paint } from './terminal.ts';

const outcomeWords: Readonly<Record<TrailStep['outcome'], string>> = {
  passed: 'passed',
  decided: 'decided',
  notReached: 'not reached',
};

function values(step: TrailStep): string {
  return Object.entries(step.values)
    .map(([name, value]) => `${cell(name)}=${cell(value)}`)
    .join('; ');
}

/** What is decided about one backup, and every rule with what it looked at. */
function explanationText({ backup, namespace, name, nacuuid, decision, trail }: Explanation, look: TableLook): string {
  const head = pairs([
    ['Backup', cell(backup)],
    ['Namespace', cell(namespace)],
    ['Name', cell(name)],
    ['NACUUID', cell(nacuuid)],
    ['Action', paint(decision.action, look.terminal)],
    ['Reason', decision.reason],
    ['Message', cell(decision.message)],
  ]);
  // What a rule looked at is what the reader asked for, so it is never cut.
  const rules = trail.map((step) => [
    String(step.rule),
    outcomeWords[step.outcome],
    // A rule that was not reached has looked at nothing.
    cell(step.asks),
    step.outcome === 'notReached' ? '' : values(step),
  ]);
  return `${head}\n${table(['#', 'OUTCOME', 'RULE', 'VALUES'], rules, { ...look, wide: true })}`;
}

export function explainText(explanations: readonly Explanation[], look: TableLook = {}): string {
  return explanations.map((explanation) => explanationText(explanation, look)).join('\n');
}
