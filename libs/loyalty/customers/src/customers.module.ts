import { Module } from '@nestjs/common';
import { CqrsModule } from '@nestjs/cqrs';
import { StampingModule } from '#stamping/stamping.module.js';
import { customerHandlers } from './customer.commands.js';
import { CustomersController } from './customers.controller.js';
import { CustomersService } from './customers.service.js';

@Module({
  imports: [CqrsModule, StampingModule],
  controllers: [CustomersController],
  providers: [CustomersService, ...customerHandlers],
})
export class CustomersModule {}
