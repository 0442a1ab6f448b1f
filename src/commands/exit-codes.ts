/** What a shell, a Job or a probe learns from the end of a command. Listed in `--help`. */
export const exitCodes = {
  ok: 0,
  /** The work failed, or the cluster did not let us do it. */
  failed: 1,
  /** The command line, a variable, the kubeconfig or an address cannot be used as given: the same call will fail again. */
  usage: 2,
  /** Ended by SIGINT or SIGTERM before it was done; by the shell's convention 128 and the signal's number. */
  interrupted: 130,
  terminated: 143,
} as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];
