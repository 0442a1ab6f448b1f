import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Reading the committed pages, for tests that hold them to the code. */

export const root = join(import.meta.dirname, '../..');

/** Every page, by its path from the project's root. */
export const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'test/hostile/README.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

export function text(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** What stands under the one heading of that name, down to the next heading of the same level or above. */
export function section(page: string, heading: string): string {
  const lines = text(page).split('\n');
  const starts = lines.flatMap((line, index) =>
    /^#+ /.test(line) && line.replace(/^#+ /, '') === heading ? index : [],
  );
  const [start] = starts;
  if (start === undefined || starts.length > 1) {
    throw new Error(`${page} has ${starts.length} headings "${heading}", and needs one`);
  }
  const level = /^#+/.exec(lines[start] ?? '')?.[0].length ?? 1;
  const length = lines.slice(start + 1).findIndex((line) => new RegExp(`^#{1,${level}} `).test(line));
  return lines.slice(start, length === -1 ? undefined : start + 1 + length).join('\n');
}

const ruler = /^\|[\s|:-]+\|$/;

/** The cells of each row of the tables in a text, without their headers. */
export function rows(markdown: string): string[][] {
  const lines = markdown.split('\n').map((line) => line.trim());
  return lines
    .filter((line, index) => line.startsWith('|') && !ruler.test(line) && !ruler.test(lines[index + 1] ?? ''))
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );
}

/** The texts between backticks. */
export function codeSpans(markdown: string): string[] {
  return [...markdown.matchAll(/`([^`\n]+)`/g)].flatMap(([, span]) => span ?? []);
}

/** The texts of the headings of one level. */
export function headings(markdown: string, level: number): string[] {
  const mark = `${'#'.repeat(level)} `;
  return markdown.split('\n').flatMap((line) => (line.startsWith(mark) ? line.slice(mark.length) : []));
}

/** A fenced block: what stands behind the three backticks, its lines, and the number of the line on which it begins. */
export interface CodeBlock {
  readonly info: string;
  readonly body: string;
  readonly line: number;
}

export function codeBlocks(markdown: string): CodeBlock[] {
  return [...markdown.matchAll(/^( *)```(.+)\n([\s\S]*?)^\1```$/gm)].map((match) => {
    const [, indent = '', info = '', body = ''] = match;
    const line = markdown.slice(0, match.index).split('\n').length;
    // A block of a list is indented with it.
    return { info, body: body.replaceAll(new RegExp(`^${indent}`, 'gm'), ''), line };
  });
}
