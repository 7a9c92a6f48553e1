/**
 * Sends this process a SIGTERM when the parent that INKPAD_PARENT_PID names has gone. Scripts of package.json set it to
 * the npm that runs them: a SIGKILL ends npm alone, and its child would run on unseen. Without it a process that has lost
 * its parent was detached on purpose, as by nohup, setsid or a service manager, and runs on.
 * The shell tells it, and not process.ppid: npm may be gone before Node.js has begun.
 */
export function endWithParent() {
  const parent = Number(process.env.INKPAD_PARENT_PID);
  // Its own child processes have another parent.
  delete process.env.INKPAD_PARENT_PID;
  if (!Number.isInteger(parent) || parent < 1) return;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    process.kill(process.pid, 'SIGTERM');
  }, 200);
  watch.unref();
}
