import { execFileSync } from 'node:child_process';

/**
 * Sends this process a SIGTERM when the npm that runs it has gone. A SIGKILL ends npm alone, and its child would run on
 * unseen. A process that npm does not run, or that was detached on purpose, as by nohup, setsid or a service manager, runs on.
 * Scripts of package.json name npm in INKPAD_PARENT_PID. The shell tells it, and not process.ppid: npm may be gone before
 * Node.js has begun. npx cannot tell it, and runs its command in a shell that it may leave behind.
 */
export function endWithParent() {
  const isOfNpx = process.env.npm_lifecycle_script === "'inkpad'";
  const parent = isOfNpx ? process.ppid : Number(process.env.INKPAD_PARENT_PID);
  // Its own child processes have another parent.
  delete process.env.INKPAD_PARENT_PID;
  if (!Number.isInteger(parent) || parent < 1) return;
  const npx = isOfNpx ? findParentOfShell(parent) : null;
  const watch = setInterval(() => {
    if (process.ppid === parent && (npx === null || isRunning(npx))) return;
    clearInterval(watch);
    process.kill(process.pid, 'SIGTERM');
  }, 200);
  watch.unref();
}

/** @returns {number | null} null if the process is no shell, as where the shell has replaced itself by its command */
function findParentOfShell(pid) {
  try {
    const options = ['-o', 'ppid=,comm=', '-p', String(pid)];
    const [parent, command] = execFileSync('ps', options, { encoding: 'utf8' }).trim().split(/\s+/);
    return command.endsWith('sh') ? Number(parent) : null;
  } catch {
    // There is no ps.
    return null;
  }
}

function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
