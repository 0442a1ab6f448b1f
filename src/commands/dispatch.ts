import type { Dispatch } from './execute.ts';

/**
 * The body of each command. Every part is loaded when its command is: the libraries behind `run` cost more time to load
 * than `plan` takes.
 */
export const dispatch: Dispatch = async (invocation, context, { streams }) => {
  switch (invocation.command) {
    case 'run': {
      const [{ run }, { runController }] = await Promise.all([
        import('./run.ts'),
        import('../controller/controller.ts'),
      ]);
      return run(context, runController);
    }
    case 'once': {
      const [{ once }, { runOnce }] = await Promise.all([import('./once.ts'), import('../controller/one-pass.ts')]);
      return once(context, invocation.output, streams, runOnce);
    }
    case 'plan': {
      const [{ plan }, { planPass }] = await Promise.all([import('./plan.ts'), import('../controller/one-pass.ts')]);
      return plan(context, invocation.output, streams, planPass);
    }
    case 'explain': {
      const [{ explain }, { explainBackup }] = await Promise.all([
        import('./explain.ts'),
        import('../controller/one-pass.ts'),
      ]);
      return explain(context, invocation.target, invocation.output, streams, explainBackup);
    }
    case 'check': {
      const [{ check }, { checkInstall }] = await Promise.all([
        import('./check.ts'),
        import('../controller/check/gather.ts'),
      ]);
      return check(context, invocation.output, streams, checkInstall);
    }
    case 'status': {
      const [{ status }, { keptStatus }] = await Promise.all([
        import('./status.ts'),
        import('../controller/kept-status.ts'),
      ]);
      return status(context, invocation.output, streams, keptStatus);
    }
    case 'request': {
      const { request } = await import('./request.ts');
      return request(context, invocation, streams);
    }
  }
};
