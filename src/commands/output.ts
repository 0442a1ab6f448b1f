import { printable } from '../oadp/printable.ts';

/** `wide`: the table with every column, nothing cut. */
export const outputFormats = ['table', 'wide', 'json', 'yaml'] as const;
export type OutputFormat = (typeof outputFormats)[number];

/** Longest text in a table cell; JSON and YAML carry it whole. */
const longestCell = 400;

/** Text from a cluster as a table cell: nothing a terminal would act on. Escaped already, it stays as it is. */
export function cell(text: string): string {
  return printable(text, longestCell);
}

/** `1 backup`, `2 backups`. */
export function counted(count: number, what: string): string {
  return `${String(count)} ${what}${count === 1 ? '' : 's'}`;
}

/** `3 create, 1 conflict`, those that are 0 left out. */
export function countsText(counts: Readonly<Record<string, number>>): string {
  const given = Object.entries(counts).filter(([, count]) => count > 0);
  return given.map(([what, count]) => `${String(count)} ${what}`).join(', ');
}

/** `data` for a program, or `toTable()` for people. Ends with a newline. */
export async function render(format: OutputFormat, data: unknown, toTable: () => string): Promise<string> {
  switch (format) {
    case 'table':
    case 'wide':
      return toTable();
    case 'json':
      return `${JSON.stringify(data, undefined, 2)}\n`;
    case 'yaml': {
      const { stringify } = await import('yaml');
      // Aliases (&a1, *a1) and folded lines are good YAML that few programs expect; and most read YAML 1.1, where a
      // namespace called `no` has to be quoted to stay a text.
      return stringify(data, { aliasDuplicateObjects: false, lineWidth: 0, compat: 'yaml-1.1' });
    }
  }
}
