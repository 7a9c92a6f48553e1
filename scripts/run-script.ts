import 'reflect-metadata';
import { Module, type DynamicModule, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { isMainThread } from 'node:worker_threads';
import { readConfig, type Config } from '#kernel/config.js';
import { NotFoundError, RejectedError } from '#kernel/errors.js';
import { ScriptLog } from '#kernel/log.js';
import { inOneSentence } from '#kernel/start-fault.js';
import { placeOf } from '#database/connecting.js';
import { isConnectionLoss } from '#database/connection.js';
import { DatabaseModule } from '#database/database.module.js';
import { databaseErrorOf, SQLSTATE } from '#database/sqlstate.js';
import { EventStoreModule } from '#event-store/event-store.module.js';
import { LargeAnswers } from '#http/large-answers.js';
import { IdentityModule } from '#identity/identity.module.js';
import { AccountsModule } from '#accounts/accounts.module.js';
import { CustomersModule } from '#customers/customers.module.js';
import { AuditModule } from '#history/audit.module.js';
import { rowTables } from '../apps/row-tables.js';

/** An error that the user can fix is printed as one sentence; any other is a bug and shows its stack. */
export function runScript(work: () => Promise<void>): void {
  work().catch((error: unknown) => {
    console.error(expected(error) ?? error);
    // Not exitCode: connections that are still open would keep the process alive.
    process.exit(1);
  });
}

function expected(error: unknown): string | undefined {
  if (error instanceof RejectedError || error instanceof NotFoundError) return error.message;
  if (isConnectionLoss(error)) return `The connection to the database was lost: ${error.message}.`;
  const refused = databaseErrorOf(error);
  if (refused?.code === SQLSTATE.insufficientPrivilege) {
    return `The database does not let this user do that: ${refused.message}.`;
  }
  return inOneSentence(error);
}

/** So that nobody changes another installation than the one they meant. Standard output is for the answer. */
export function sayWhere({ databaseUrl, eventStoreUrl, publicUrl }: Config): void {
  const events =
    eventStoreUrl === null ? '' : `, events in EventStoreDB at ${hostsOf(eventStoreUrl)}`;
  console.error(`database: ${placeOf(databaseUrl)}${events}; service: ${publicUrl}`);
}

/** Without user and password. */
export function hostsOf(eventStoreUrl: string): string {
  return /^[^:]+:\/\/(?:.*@)?([^/?]+)/.exec(eventStoreUrl)?.[1] ?? '';
}

@Module({})
class ScriptModule {
  static forRoot(config: Config): DynamicModule {
    return {
      module: ScriptModule,
      // What the controllers of these modules take from the server.
      global: true,
      providers: [LargeAnswers],
      exports: [LargeAnswers],
      imports: [
        DatabaseModule.forRoot(config, 'script'),
        EventStoreModule.forRoot(rowTables),
        IdentityModule,
        AccountsModule,
        CustomersModule,
        AuditModule,
      ],
    };
  }
}

/** The same commands and stores as in the api, without HTTP. */
export async function withServices<R>(
  work: (app: INestApplicationContext) => Promise<R>,
): Promise<R> {
  const config = readConfig(process.env);
  // The threads of a script work where the script does.
  if (isMainThread) sayWhere(config);
  const app = await NestFactory.createApplicationContext(ScriptModule.forRoot(config), {
    logger: new ScriptLog(),
    abortOnError: false,
  });
  try {
    await app.init();
    return await work(app);
  } finally {
    await app.close();
  }
}
