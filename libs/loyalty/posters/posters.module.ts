import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { posterHandlers } from './poster.commands.js';
import { posterEntity } from './poster.entity.js';
import { PostersController } from './posters.controller.js';
import { PostersService } from './posters.service.js';

@Module({
  imports: [TypeOrmModule.forFeature([posterEntity])],
  controllers: [PostersController],
  providers: [PostersService, ...posterHandlers],
  exports: [PostersService],
})
export class PostersModule {}
