import type { JsonObject } from '../../../../src/kube/resource.ts';
import type { NonAdminBackupRecord } from '../../../../src/oadp/non-admin-backup.ts';
import { decide } from '../../../../src/sync/decide.ts';
import {
  NamespacePass,
  type Decided,
  type ItemResult,
  type PassContext,
  type PassOptions,
} from '../../../../src/sync/namespace-pass.ts';
import { RequestSlots } from '../../../../src/sync/request-slots.ts';
import { RetainedBackups } from '../../../../src/sync/retained-backups.ts';
import { at, day, noon, second, veleroBackup, type VeleroBackupShape } from '../../../support/gen/api-objects.ts';
import { scene, type Scene, type SceneObjects } from './scene.ts';
import { scriptedClient, type Answer, type ScriptedClient } from './scripted-client.ts';

/** Backups of namespace team-a, each of a NAB of its own name; the first completed first. */
export function backupsNamed(names: readonly string[], shape: VeleroBackupShape = {}): JsonObject[] {
  return names.map((name, index) =>
    veleroBackup({
      ...shape,
      nacuuid: name,
      name,
      status: { completionTimestamp: at(-day + index * second), ...shape.status },
    }),
  );
}

/** A namespace and what a pass over it needs, with a client that the test answers for. */
export interface PassWorld {
  readonly scene: Scene;
  readonly client: ScriptedClient;
  readonly context: PassContext;
  /** The moment that the pass sees; may be moved while it runs. */
  readonly clock: { now: number };
  /** Runs a pass over team-a; results by Backup. */
  readonly run: (options?: Partial<PassOptions>) => Promise<Map<string, ItemResult>>;
}

/** So many slots, in which no time goes by. */
export function slotsOf(current: number): RequestSlots {
  return new RequestSlots({ current, ceiling: current }, () => noon);
}

export function passWorld(objects: SceneObjects = {}, answer?: Answer, context: Partial<PassContext> = {}): PassWorld {
  const made = scene(objects);
  const client = scriptedClient(objects.backups ?? [veleroBackup()], answer);
  const clock = { now: objects.now ?? noon };
  const whole: PassContext = {
    client,
    state: made.state,
    policy: made.policy,
    nonAdminBackups: storeOf(made),
    slots: new RequestSlots({ current: 16, ceiling: 16 }, () => clock.now),
    retained: new RetainedBackups(),
    now: () => clock.now,
    ...context,
  };
  return {
    scene: made,
    client,
    context: whole,
    clock,
    run: async (options = {}) => {
      const items: Decided[] = [...made.state.backupsOf('team-a')].map((backup) => ({
        backup,
        decision: decide(backup, made.world()),
      }));
      const pass = new NamespacePass(whole, {
        isLive: () => false,
        probe: false,
        failedIn: new Map(),
        stop: new AbortController().signal,
        ...options,
      });
      const results = await pass.run(items);
      return new Map(results.map((result) => [result.backup.name, result]));
    },
  };
}

function storeOf({ nonAdminBackups }: Scene): PassContext['nonAdminBackups'] {
  return {
    set: (key: string, record: NonAdminBackupRecord) => nonAdminBackups.set(key, record),
    delete: (key: string) => nonAdminBackups.delete(key),
  };
}
