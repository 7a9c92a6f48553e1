import 'reflect-metadata';
import {
  Module,
  type DynamicModule,
  type INestApplicationContext,
  type Type,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { isMainThread } from 'node:worker_threads';
import { readConfig, type Config } from '#configuration/config.js';
import { CommandLog } from '#platform/kernel/log.js';
import { DatabaseModule } from '#platform/database/database.module.js';
import { EventStoreModule } from '#platform/event-store/event-store.module.js';
import { LargeResponses } from '#platform/http/large-responses.js';
import { IdentityModule } from '#identity/identity.module.js';
import { AdminTokensModule } from '#web/admin-api/admin-tokens.module.js';
import { AccountsModule } from '#loyalty/accounts/accounts.module.js';
import { CustomersModule } from '#loyalty/customers/customers.module.js';
import { AuditModule } from '#loyalty/history/audit.module.js';
import { customerSubjects } from '#loyalty/stamping/customer-subjects.js';
import { plainTables, readModels } from '../read-models.js';
import { printInstallation } from './run-program.js';

@Module({})
class CommandModule {
  static forRoot(config: Config, modules: Type[]): DynamicModule {
    return {
      module: CommandModule,
      // Dependencies that these modules' controllers get from the server.
      global: true,
      providers: [LargeResponses],
      exports: [LargeResponses],
      imports: [
        DatabaseModule.forRoot(config, 'command'),
        EventStoreModule.forRoot({
          readModels,
          plainTables,
          subjects: customerSubjects,
        }),
        IdentityModule,
        AdminTokensModule,
        AccountsModule,
        CustomersModule,
        AuditModule,
        ...modules,
      ],
    };
  }
}

/**
 * Runs work with the same commands and stores as in the api, without HTTP.
 * @param modules those that only this work needs
 */
export async function withServices<R>(
  work: (app: INestApplicationContext) => Promise<R>,
  modules: Type[] = [],
): Promise<R> {
  const config = readConfig(process.env);
  // The threads of a command work where the command does.
  if (isMainThread) printInstallation(config);
  const app = await NestFactory.createApplicationContext(CommandModule.forRoot(config, modules), {
    logger: new CommandLog(),
    abortOnError: false,
  });
  try {
    await app.init();
    return await work(app);
  } finally {
    await app.close();
  }
}
