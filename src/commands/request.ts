import { makeClient } from '../controller/clients.ts';
import type { CommandContext } from '../controller/context.ts';
import { systemClock } from '../kube/clock.ts';
import type { JsonObject } from '../kube/resource.ts';
import { quoted } from '../oadp/printable.ts';
import { makeRequest, UnansweredError, untilAnswered } from '../requests/ask.ts';
import { labelSelectorObject } from '../requests/namespace-selector.ts';
import { DurationError, formatDuration, parseDuration } from '../settings/duration.ts';
import { SettingsError } from '../settings/settings-error.ts';
import { exitCodes } from './exit-codes.ts';
import { render, type OutputFormat } from './output.ts';
import { messageOf, requestDocument, requestText, type RequestDocument } from './request-output.ts';
import type { CommandResult } from './result.ts';
import { tell, write, type Streams } from './streams.ts';

export interface RequestOptions {
  readonly wait: boolean;
  /** As it was typed. */
  readonly timeout: string;
  readonly output: OutputFormat;
}

/** Asks the controller for a sync, with the rights of whoever calls; and with `wait` tells what came of it. */
export async function request(
  context: CommandContext,
  { wait, timeout, output }: RequestOptions,
  streams: Streams,
): Promise<CommandResult> {
  const namespace = namespaceOf(context);
  const timeoutMs = timeoutOf(timeout);
  const selector = selectorOf(context);
  const client = makeClient(context);
  const show = async (document: RequestDocument): Promise<void> => {
    await write(streams.out, await render(output, document, () => requestText(document)));
  };
  try {
    const made = await makeRequest(client, namespace, selector);
    const { name } = requestDocument(made);
    if (!wait) {
      await show(requestDocument(made));
      return { exitCode: exitCodes.ok };
    }
    await tell(streams, `request ${namespace}/${name} is made, waiting for its answer`);
    const answered = await untilAnswered(made, {
      client,
      timeoutMs,
      clock: systemClock,
      signal: context.signal,
      onPhase: (phase) => void tell(streams, `request ${namespace}/${name}: ${phase}`),
    });
    const document = requestDocument(answered);
    await show(document);
    return resultOf(document);
  } catch (error) {
    if (!(error instanceof UnansweredError)) throw error;
    const document = requestDocument(error.request);
    await show(document);
    const message = `request ${document.namespace}/${document.name} is not answered after ${formatDuration(timeoutMs)}; is a nab-sync run at work? The answer will be in the request's status`;
    await tell(streams, message);
    return { exitCode: exitCodes.failed, failed: { code: 'Timeout', message } };
  } finally {
    await client.close();
  }
}

function resultOf({ status }: RequestDocument): CommandResult {
  if (status['phase'] === 'Succeeded') return { exitCode: exitCodes.ok };
  return {
    exitCode: exitCodes.failed,
    failed: { code: String(status['phase']), message: messageOf(status) ?? 'the request was not carried out' },
  };
}

function namespaceOf({ namespaces, connection }: CommandContext): string {
  const [given = connection.namespace, ...more] = namespaces;
  if (more.length > 0) throw new SettingsError(['--namespace: a request is for one namespace, got several']);
  if (given === undefined) {
    throw new SettingsError(["--namespace: expected a namespace, since the kubeconfig's context names none"]);
  }
  return given;
}

/** Only what was given on the command line: the variable is the controller's setting. */
function selectorOf({ settings: { namespaceSelector } }: CommandContext): JsonObject | undefined {
  if (namespaceSelector.source !== 'flag') return undefined;
  const selector = labelSelectorObject(namespaceSelector.value);
  if (selector === undefined) throw new SettingsError(['--namespace-selector: a request takes no < and >']);
  return selector;
}

function timeoutOf(text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    if (!(error instanceof DurationError)) throw error;
    throw new SettingsError([`--timeout: ${error.message}, got ${quoted(text, 80)}`]);
  }
}
