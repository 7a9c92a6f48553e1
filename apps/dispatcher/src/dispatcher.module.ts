import { Module, type DynamicModule } from '@nestjs/common';
import type { Config } from '#kernel/config.js';
import { DatabaseModule } from '#database/database.module.js';
import { EventStoreModule } from '#event-store/event-store.module.js';
import { WebhookDispatchModule } from '#webhooks/webhook-dispatch.module.js';

@Module({})
export class DispatcherModule {
  static forRoot(config: Config): DynamicModule {
    return {
      module: DispatcherModule,
      imports: [
        DatabaseModule.forRoot(config, 'dispatcher'),
        EventStoreModule,
        WebhookDispatchModule,
      ],
    };
  }
}
