import { z } from 'zod';
import { resourcePath } from '../../src/kube/resource.ts';
import type { Resource } from '../../src/kube/resource.ts';
import type { ApiClient } from './api-client.ts';

const table = z.object({
  columnDefinitions: z.array(z.object({ name: z.string(), priority: z.number() })),
  rows: z.array(
    z.object({
      cells: z.array(z.unknown()),
      object: z.object({ metadata: z.object({ namespace: z.string().optional() }) }),
    }),
  ),
});

/**
 * What `kubectl get` prints for a kind, made of the columns that the server itself gives. Without `namespace` it is
 * `kubectl get -A`, with its column for the namespace.
 */
export async function getTable(api: ApiClient, resource: Resource, namespace?: string): Promise<string> {
  const answer = await api.call('GET', resourcePath(resource, { namespace }), {
    accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
  });
  const { columnDefinitions, rows } = table.parse(answer);
  if (rows.length === 0) return 'No resources found';
  const everywhere = resource.namespaced && namespace === undefined;
  // Columns of a higher priority are for `-o wide`.
  const shown = columnDefinitions.flatMap(({ name, priority }, index) => (priority === 0 ? [{ name, index }] : []));
  const lines = [
    [...(everywhere ? ['NAMESPACE'] : []), ...shown.map(({ name }) => name.toUpperCase())],
    ...rows.map(({ cells, object }) => [
      ...(everywhere ? [object.metadata.namespace ?? ''] : []),
      ...shown.map(({ index }) => cellText(cells[index])),
    ]),
  ];
  return align(lines);
}

function cellText(cell: unknown): string {
  if (typeof cell === 'string') return cell;
  return cell === null || cell === undefined ? '' : JSON.stringify(cell);
}

/** Columns three spaces apart, as kubectl's are; a cell is at least six wide. */
function align(lines: readonly (readonly string[])[]): string {
  const columns = lines[0]?.length ?? 0;
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(6, ...lines.map((cells) => (cells[column] ?? '').length)),
  );
  return lines
    .map((cells) =>
      cells.map((cell, column) => (column === columns - 1 ? cell : cell.padEnd((widths[column] ?? 0) + 3))).join(''),
    )
    .join('\n');
}
