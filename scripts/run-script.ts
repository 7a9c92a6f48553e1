import 'reflect-metadata';
import { Module, type DynamicModule, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ConfigError, readConfig, type Config } from '#kernel/config.js';
import { NotFoundError, RejectedError } from '#kernel/errors.js';
import { DatabaseModule } from '#database/database.module.js';
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
    const expected =
      error instanceof ConfigError ||
      error instanceof RejectedError ||
      error instanceof NotFoundError;
    console.error(expected ? error.message : error);
    // Not exitCode: connections left by a failed start would keep the process alive.
    process.exit(1);
  });
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
  const app = await NestFactory.createApplicationContext(
    ScriptModule.forRoot(readConfig(process.env)),
    { logger: ['fatal', 'error'], abortOnError: false },
  );
  try {
    await app.init();
    return await work(app);
  } finally {
    await app.close();
  }
}
