import { readConfig } from '#configuration/config.js';
import { parseProgram } from './programs.js';
import { runProgram, printInstallation } from './run-program.js';
import { checkMail } from './diagnosis/mail-checks.js';
import { checkService } from './diagnosis/service-checks.js';

parseProgram('doctor');

const LABELS = { ok: 'ok     ', warning: 'warning', wrong: 'WRONG  ' };

/** Checks what Inkpad needs, and says what to do. Prints a line for each, and exits 1 if something is wrong. */
runProgram(async () => {
  const config = readConfig(process.env);
  printInstallation(config);
  let isWrong = false;
  for (const check of [...checkService(config), ...checkMail(config)]) {
    for (const { state, name, text } of await check()) {
      isWrong ||= state === 'wrong';
      console.log(`${LABELS[state]}  ${name}: ${text}`);
    }
  }
  process.exit(isWrong ? 1 : 0);
});
