// The whole file ends up in the bundle; it is small and holds nothing that is not public.
import manifest from '../../package.json' with { type: 'json' };

/** nab-sync's own version. */
export const version = manifest.version;
