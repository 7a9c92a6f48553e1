import { Module, type DynamicModule, type Type } from '@nestjs/common';
import { PassChanges } from './pass-changes.subscription.js';
import { PassMessageWriter } from './pass-messages.service.js';
import { PassDispatch } from './pass-dispatch.service.js';
import { PASS_SENDERS, type PassSender } from './pass-sender.js';
import { PassTable } from './pass-table.service.js';
import { PassesModule } from './passes.module.js';
import { DecoyCardCleanup } from './decoy-card-cleanup.service.js';

/** Sends updates of passes, in the dispatcher. */
@Module({})
export class PassDispatchModule {
  /** Creates the module. @param senders one for each channel, exported by the modules */
  static forRoot(modules: Type[], senders: Type<PassSender>[]): DynamicModule {
    return {
      module: PassDispatchModule,
      imports: [PassesModule, ...modules],
      providers: [
        PassTable,
        PassChanges,
        PassDispatch,
        DecoyCardCleanup,
        PassMessageWriter,
        {
          provide: PASS_SENDERS,
          inject: senders,
          useFactory: (...each: PassSender[]) => each,
        },
      ],
      exports: [PassChanges, PassDispatch, PassMessageWriter, DecoyCardCleanup],
    };
  }
}
